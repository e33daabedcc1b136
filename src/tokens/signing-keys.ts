import {
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import { calculateJwkThumbprint } from "jose";
import { ConfigError } from "../core/config-problem.ts";
import type { Log } from "../core/log.ts";
import { ALGORITHMS, type SigningAlgorithm } from "./algorithms.ts";
import { type FoundKey, readKeyDirectory } from "./key-directory.ts";
import type { VerificationKey } from "./key-set.ts";

export interface SigningKeyOptions {
  readonly algorithm: SigningAlgorithm;
  /** Where the key files are; left out, a key is made. */
  readonly directory?: string;
  readonly log: Log;
}

interface SigningKey {
  /** The RFC 7638 thumbprint. */
  readonly kid: string;
  readonly algorithm: SigningAlgorithm;
  /** A private key, or a secret. */
  readonly key: KeyObject;
}

/** Our own keys. A plain object of `KeyObject`s, so that it can be posted to a worker thread as it is. */
export interface SigningKeys {
  /** Undefined when there are public keys alone: then tokens are verified and none are issued. */
  readonly signing: SigningKey | undefined;
  readonly verification: readonly VerificationKey[];
}

/**
 * Loads our keys: the newest that goes with the configured algorithm signs, all verify. Throws `ConfigError` with every
 * fault of the directory: a file that holds no key, a weak key, no key at all, none for the algorithm.
 */
export async function loadSigningKeys({
  algorithm,
  directory,
  log,
}: SigningKeyOptions): Promise<SigningKeys> {
  if (directory === undefined) {
    log.warn(
      "A signing key was made: its tokens end with this process, other replicas refuse them",
    );
    return arrange([{ key: generateKey(algorithm), algorithm }], algorithm);
  }
  const found = await readKeyDirectory(directory, algorithm);
  const exposed = found.filter((each) => each.exposed).map((each) => each.file);
  if (exposed.length > 0) log.warn("Signing keys can be read by other users", { files: exposed });
  const keys = await arrange(found, algorithm);
  if (keys.signing === undefined) {
    if (found.some(({ key }) => key.type !== "public")) {
      throw new ConfigError([{ file: directory, message: `No key here can sign ${algorithm}` }]);
    }
    log.warn("There are public keys only: no tokens can be issued", { directory });
  }
  log.info("Keys were loaded", { signing: keys.signing?.kid, keys: keys.verification.length });
  return keys;
}

/** @param found newest first. */
async function arrange(
  found: readonly Pick<FoundKey, "key" | "algorithm">[],
  configured: SigningAlgorithm,
): Promise<SigningKeys> {
  const signer = found.find((one) => one.key.type !== "public" && one.algorithm === configured);
  const verification = new Map<string, VerificationKey>();
  let signing: SigningKey | undefined;
  // The signer comes first: one key in two files counts once, and must verify what it signs.
  for (const each of signer === undefined ? found : [signer, ...found]) {
    const key = each.key.type === "private" ? createPublicKey(each.key) : each.key;
    const kid = await calculateJwkThumbprint(key);
    if (each === signer) signing ??= { kid, algorithm: each.algorithm, key: each.key };
    if (!verification.has(kid)) verification.set(kid, { kid, algorithms: [each.algorithm], key });
  }
  return { signing, verification: [...verification.values()] };
}

function generateKey(algorithm: SigningAlgorithm): KeyObject {
  const row = ALGORITHMS[algorithm];
  switch (row.keyType) {
    case "ec":
      return generateKeyPairSync("ec", { namedCurve: row.curve }).privateKey;
    case "ed25519":
      return generateKeyPairSync("ed25519").privateKey;
    case "rsa":
      return generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
    case "secret":
      return createSecretKey(randomBytes(row.bytes));
  }
}
