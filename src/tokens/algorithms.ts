import { constants, type KeyObject } from "node:crypto";

/** r and s beside each other instead of in DER (RFC 7518 §3.4). */
const CONCATENATED = { dsaEncoding: "ieee-p1363" } as const;
const PKCS1 = { padding: constants.RSA_PKCS1_PADDING } as const;
/** A salt as long as the hash (RFC 7518 §3.5). */
const PSS = {
  padding: constants.RSA_PKCS1_PSS_PADDING,
  saltLength: constants.RSA_PSS_SALTLEN_DIGEST,
} as const;

/**
 * The signature algorithms (RFC 7518 §3.1, RFC 8037 §3.1), each with the one kind of key that it goes with, the hash, and
 * how the signature is written. `bytes` is the least length of a secret: that of the hash (RFC 7518 §3.2).
 */
export const ALGORITHMS = {
  ES256: { keyType: "ec", curve: "prime256v1", hash: "sha256", signature: CONCATENATED },
  ES384: { keyType: "ec", curve: "secp384r1", hash: "sha384", signature: CONCATENATED },
  ES512: { keyType: "ec", curve: "secp521r1", hash: "sha512", signature: CONCATENATED },
  EdDSA: { keyType: "ed25519", hash: null, signature: {} },
  RS256: { keyType: "rsa", hash: "sha256", signature: PKCS1 },
  RS384: { keyType: "rsa", hash: "sha384", signature: PKCS1 },
  RS512: { keyType: "rsa", hash: "sha512", signature: PKCS1 },
  PS256: { keyType: "rsa", hash: "sha256", signature: PSS },
  PS384: { keyType: "rsa", hash: "sha384", signature: PSS },
  PS512: { keyType: "rsa", hash: "sha512", signature: PSS },
  HS256: { keyType: "secret", hash: "sha256", bytes: 32 },
  HS384: { keyType: "secret", hash: "sha384", bytes: 48 },
  HS512: { keyType: "secret", hash: "sha512", bytes: 64 },
} as const;

export type SigningAlgorithm = keyof typeof ALGORITHMS;
/** What the tokens of others may be signed with: a secret shared with another issuer would let us sign in its name. */
export type AsymmetricAlgorithm = Exclude<SigningAlgorithm, `HS${string}`>;

const NAMES = Object.keys(ALGORITHMS).filter(isSigningAlgorithm);
const CURVES: readonly (string | undefined)[] = ["prime256v1", "secp384r1", "secp521r1"];
const RSA_BITS = 2048; // RFC 7518 §3.3
const RSA_EXPONENT = 65_537n; // NIST SP 800-56B rev. 2 §6.2
const SECRET_BYTES = 32;

export function isSigningAlgorithm(name: unknown): name is SigningAlgorithm {
  return typeof name === "string" && Object.hasOwn(ALGORITHMS, name);
}

/** What makes a key unfit for any signature that we accept, or undefined. Never tells anything of the key but its size. */
export function weaknessOf(key: KeyObject): string | undefined {
  if (key.type === "secret") {
    const bytes = key.symmetricKeySize ?? 0;
    return bytes < SECRET_BYTES
      ? `the secret has ${bytes} bytes, ${SECRET_BYTES} or more are needed`
      : undefined;
  }
  const { modulusLength = 0, publicExponent = 0n, namedCurve } = key.asymmetricKeyDetails ?? {};
  switch (key.asymmetricKeyType) {
    case "ed25519":
      return undefined;
    case "ec":
      return CURVES.includes(namedCurve)
        ? undefined
        : "its curve is none of P-256, P-384 and P-521";
    case "rsa":
      if (modulusLength < RSA_BITS) {
        return `the RSA key has ${modulusLength} bits, ${RSA_BITS} or more are needed`;
      }
      return publicExponent < RSA_EXPONENT
        ? `the RSA public exponent is less than ${RSA_EXPONENT}`
        : undefined;
    default:
      return `keys of the type ${String(key.asymmetricKeyType)} are not supported`;
  }
}

/** Whether a key that has no weakness can be used with this algorithm. */
export function fits(key: KeyObject, algorithm: SigningAlgorithm): boolean {
  const row = ALGORITHMS[algorithm];
  if (row.keyType === "secret") {
    return key.type === "secret" && (key.symmetricKeySize ?? 0) >= row.bytes;
  }
  if (row.keyType !== key.asymmetricKeyType) return false;
  return row.keyType !== "ec" || key.asymmetricKeyDetails?.namedCurve === row.curve;
}

/**
 * The one algorithm that a key of ours is used with: what its own JWK says, else the configured one, else the first that
 * fits (RS256 for RSA). Undefined when the JWK names one that the key cannot be used with.
 */
export function algorithmOf(
  key: KeyObject,
  named: string | undefined,
  configured: SigningAlgorithm,
): SigningAlgorithm | undefined {
  if (named !== undefined) return isSigningAlgorithm(named) && fits(key, named) ? named : undefined;
  return fits(key, configured) ? configured : NAMES.find((name) => fits(key, name));
}
