import { calculateJwkThumbprint } from "jose/jwk/thumbprint";
import type { KeyObject } from "node:crypto";
import { isJsonObject, jsonObjectIn } from "../../lib/text/strict-json.ts";
import {
  ASYMMETRIC_ALGORITHMS,
  type AsymmetricAlgorithm,
  fits,
  weaknessOf,
} from "../keys/algorithms.ts";
import { isSecretOrPrivate, publicKey } from "../keys/key-set.ts";
import { isDate } from "../verify/claims.ts";
import { typeName } from "../verify/token-text.ts";

/** The key with which a client signs proofs. */
export interface ProofKey {
  readonly algorithm: AsymmetricAlgorithm;
  readonly key: KeyObject;
  /** RFC 7638. */
  readonly thumbprint: string;
}

/** A proof as it was sent (RFC 9449 §4.2). Nothing in it is verified yet. */
interface UnverifiedProof {
  /** The first part of the compact JWS. Each client repeats it. */
  readonly header: string;
  readonly jti: string;
  readonly htm: string;
  readonly htu: string;
  /** In seconds since the epoch. */
  readonly iat: number;
  readonly ath: unknown;
  readonly nonce: string | undefined;
}

/** The longest proof, in characters: one with an RSA key of 4096 bits takes 2,300. */
const LONGEST = 4_096;
const LONGEST_JTI = 256;
const FORM = /^([\w-]+)\.([\w-]+)\.[\w-]+$/;
/** Members that change what is signed or how it is read, and those that name another key than `jwk`. */
const REFUSED = ["crit", "b64", "zip", "kid", "jku", "x5u", "x5c", "x5t", "x5t#S256"];
/** OpenSSL takes longer for a longer one: 5 ms for 3,072 bits. */
const LARGEST_EXPONENT = 2n ** 32n;
const RSA_BITS = 4_096;

/** Reads a proof, but not its header. @returns what is wrong, in words, if it is none. */
export function readProof(text: string): UnverifiedProof | string {
  const [, header = "", payload = ""] = (text.length <= LONGEST && FORM.exec(text)) || [];
  if (header === "") return `it is not a compact JWS of at most ${LONGEST} characters`;
  const claims = jsonIn(payload);
  if (claims === undefined) return "its payload is not a JSON object with unique names";
  const { jti, htm, htu, iat, ath, nonce } = claims;
  if (typeof jti !== "string" || jti === "" || Buffer.byteLength(jti) > LONGEST_JTI) {
    return `"jti" must be a string of 1 to ${LONGEST_JTI} bytes`;
  }
  if (typeof htm !== "string") return 'there is no "htm"';
  if (typeof htu !== "string") return 'there is no "htu"';
  if (!isDate(iat)) return '"iat" must be a number of seconds';
  if (nonce !== undefined && typeof nonce !== "string") return '"nonce" is not a string';
  return { header, jti, htm, htu, iat, ath, nonce };
}

/**
 * Reads the header of a proof, and the key that it brings, from what is cheap to what is dear.
 *
 * @param part the first part of the compact JWS. @returns what is wrong, in words, if it is not the header of a proof.
 */
export function readProofHeader(part: string) {
  const header = jsonIn(part);
  if (header === undefined) return "its header is not a JSON object with unique names";
  const { typ, alg, jwk } = header;
  if (typeof typ !== "string" || typeName(typ) !== "dpop+jwt") return '"typ" is not dpop+jwt';
  const algorithm = ASYMMETRIC_ALGORITHMS.find((name) => name === alg);
  if (algorithm === undefined) return '"alg" is not one that is accepted';
  const refused = REFUSED.find((name) => name in header);
  if (refused !== undefined) return `its header has "${refused}"`;
  if (!isJsonObject(jwk)) return 'its header has no "jwk"';
  if (isSecretOrPrivate(jwk)) return '"jwk" is secret or private';
  return {
    /** Returns the thumbprint of the key (RFC 7638); undefined if it has not the members of one. */
    thumbprint: () => calculateJwkThumbprint(jwk).catch(() => undefined),
    /** Imports the key. @returns what is wrong, in words, if it cannot be used. */
    key(thumbprint: string): ProofKey | string {
      const key = publicKey(jwk);
      if (key === undefined) return '"jwk" cannot be read';
      const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {};
      const weakness = weaknessOf(key);
      if (weakness !== undefined) return weakness;
      if (modulusLength > RSA_BITS || publicExponent > LARGEST_EXPONENT) {
        return '"jwk" is too large';
      }
      return fits(key, algorithm) ? { algorithm, key, thumbprint } : '"alg" does not fit "jwk"';
    },
  };
}

function jsonIn(part: string): Record<string, unknown> | undefined {
  return jsonObjectIn(Buffer.from(part, "base64url").toString());
}
