import {
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  type KeyObject,
  sign,
  verify,
} from "node:crypto";
import { jsonObjectIn } from "../../lib/text/strict-json.ts";

/** One key as read from a file. */
export interface KeyMaterial {
  readonly key: KeyObject;
  /** The `alg` of a JWK (RFC 7517 §4.4). */
  readonly algorithm?: string | undefined;
  /** The `iat` of a JWK: when the key was created, in seconds since the epoch. */
  readonly issuedAt?: number | undefined;
  /** The `nbf` of a JWK: when the key starts to sign, in seconds since the epoch. */
  readonly notBefore?: number | undefined;
  /** The `exp` of a JWK: when the key stops verifying, in seconds since the epoch. */
  readonly expires?: number | undefined;
}

/** Why a text is not a key. The message never quotes the text. */
export class KeyFormatError extends Error {}

const PEM_LABEL = /-----BEGIN ([A-Z0-9 ]+)-----/g;
const PEM_READERS = {
  "PRIVATE KEY": createPrivateKey,
  "EC PRIVATE KEY": createPrivateKey,
  "RSA PRIVATE KEY": createPrivateKey,
  "PUBLIC KEY": createPublicKey,
  "RSA PUBLIC KEY": createPublicKey,
} as const;

/** Parses a file with one key: PEM (PKCS#8, SEC1, PKCS#1, SPKI) or JWK. Throws `KeyFormatError`. */
export function readKey(text: string): KeyMaterial {
  if (text.trimStart().startsWith("{")) return readJwk(text);
  if (text.includes("-----BEGIN ")) return readPem(text);
  throw new KeyFormatError("neither a PEM nor a JWK key");
}

function readPem(text: string): KeyMaterial {
  // `openssl ecparam -genkey` writes the curve's parameters first.
  const labels = [...text.matchAll(PEM_LABEL)]
    .map((match) => match[1] ?? "")
    .filter((label) => label !== "EC PARAMETERS");
  const [label = "", another] = labels;
  if (another !== undefined) throw new KeyFormatError("more than one PEM block");
  const reader = Object.entries(PEM_READERS).find(([name]) => name === label)?.[1];
  if (reader === undefined) throw new KeyFormatError("the PEM block is not an unencrypted key");
  return { key: imported(() => reader(text)) };
}

function readJwk(text: string): KeyMaterial {
  const jwk = jsonObjectIn(text);
  if (jwk === undefined) throw new KeyFormatError("not a valid JSON object");
  if ("keys" in jwk) throw new KeyFormatError("a set of keys; each file must hold one key");
  const { alg, use } = jwk;
  if (alg !== undefined && typeof alg !== "string")
    throw new KeyFormatError('"alg" is not a string');
  if (use !== undefined && use !== "sig") throw new KeyFormatError('"use" is not "sig"');
  return {
    key: keyFromJwk(jwk),
    algorithm: alg,
    issuedAt: dateIn(jwk, "iat"),
    notBefore: dateIn(jwk, "nbf"),
    expires: dateIn(jwk, "exp"),
  };
}

/** Returns a NumericDate (RFC 7519 §2). JSON allows `1e400`, which parses as infinity. */
function dateIn(jwk: Record<string, unknown>, name: string): number | undefined {
  const value = jwk[name];
  if (value === undefined) return undefined;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new KeyFormatError(`"${name}" is not a number`);
}

/** Returns the key that a JWK describes: secret (`oct`), private (with `d`) or public. Throws `KeyFormatError`. */
export function keyFromJwk(jwk: Record<string, unknown>): KeyObject {
  if (jwk["kty"] === "oct") {
    const { k } = jwk;
    const secret = Buffer.from(typeof k === "string" ? k : "", "base64url");
    if (secret.length === 0 || secret.toString("base64url") !== k) {
      throw new KeyFormatError('"k" is not base64url text');
    }
    return createSecretKey(secret);
  }
  if (!("d" in jwk)) return imported(() => createPublicKey({ key: jwk, format: "jwk" }));
  const key = imported(() => createPrivateKey({ key: jwk, format: "jwk" }));
  if (!verifiesItself(key)) throw new KeyFormatError("its private part is that of another key");
  return key;
}

/**
 * Signs and verifies a text. Node 24 accepts a JWK whose private part belongs to another public key, so that nobody
 * could verify its signatures.
 */
function verifiesItself(key: KeyObject): boolean {
  const text = Buffer.from("a key verifies what it signs");
  const digest = key.asymmetricKeyType === "ed25519" ? null : "sha256";
  try {
    return verify(digest, text, createPublicKey(key), sign(digest, text, key));
  } catch {
    // The key cannot sign because of its type or size: `weaknessOf` reports it.
    return true;
  }
}

function imported(read: () => KeyObject): KeyObject {
  try {
    return read();
  } catch {
    // Node's message may quote members of the JWK.
    throw new KeyFormatError("not a key that can be read");
  }
}
