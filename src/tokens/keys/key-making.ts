import {
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import { calculateJwkThumbprint } from "jose/jwk/thumbprint";
import { ALGORITHMS, type SigningAlgorithm } from "./algorithms.ts";

const RSA_BITS = 3072; // 128 bits of security strength, like ES256 (NIST SP 800-57 part 1 §5.6.1)

/** Generates a signature key for an algorithm: a private key, or a secret as long as the hash. */
export function makeKey(algorithm: SigningAlgorithm, rsaBits: number = RSA_BITS): KeyObject {
  const row = ALGORITHMS[algorithm];
  switch (row.keyType) {
    case "ec":
      return generateKeyPairSync("ec", { namedCurve: row.curve }).privateKey;
    case "ed25519":
      return generateKeyPairSync("ed25519").privateKey;
    case "rsa":
      return generateKeyPairSync("rsa", { modulusLength: rsaBits }).privateKey;
    case "secret":
      return createSecretKey(randomBytes(row.bytes));
  }
}

export interface NamedKey {
  /** The RFC 7638 thumbprint. */
  readonly kid: string;
  /** A private key, or a secret. */
  readonly key: KeyObject;
}

/** Generates a key with its `kid`. */
export async function makeNamedKey(algorithm: SigningAlgorithm): Promise<NamedKey> {
  const key = makeKey(algorithm);
  const verifier = key.type === "private" ? createPublicKey(key) : key;
  return { kid: await calculateJwkThumbprint(verifier), key };
}

/** Returns the name of the file of a new key, which sorts by the day when it was made. */
export function keyFileName(kid: string, nowMs: number): string {
  return `${new Date(nowMs).toISOString().slice(0, 10)}-${kid.slice(0, 8)}.jwk`;
}
