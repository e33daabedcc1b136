import { generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { chmod } from "node:fs/promises";
import { calculateJwkThumbprint } from "jose";
import { ConfigError } from "../../src/core/config-problem.ts";
import type { SigningAlgorithm } from "../../src/tokens/keys/algorithms.ts";
import { readKeyFiles } from "../../src/tokens/keys/key-directory.ts";
import { loadSigningKeys } from "../../src/tokens/keys/watched-keys.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

export const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
export const rsaJwk = rsa.privateKey.export({ format: "jwk" });
export const secretJwk = (bytes: number, more = {}): string =>
  JSON.stringify({ kty: "oct", k: randomBytes(bytes).toString("base64url"), ...more });

/** Content by name. */
type Files = Record<string, string | Buffer>;

export async function loading(files: Files, algorithm: SigningAlgorithm = "ES256") {
  await using directory = await temporaryDirectory();
  for (const [name, content] of Object.entries(files)) {
    await chmod(await directory.write(name, content), 0o600);
  }
  const log = recordedLog();
  const read = await readKeyFiles(directory.path);
  return { keys: await loadSigningKeys({ algorithm, files: read, log }), log };
}

export async function refusal(files: Files, algorithm: SigningAlgorithm = "ES256") {
  try {
    await loading(files, algorithm);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

export const thumbprint = (key: KeyObject): Promise<string> => calculateJwkThumbprint(key);
