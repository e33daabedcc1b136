import { randomBytes } from "node:crypto";
import { chmod, chown, link, readFile, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { writeNewFile } from "../../lib/files/write-file.ts";
import { isJsonObject, parseStrictJson } from "../../lib/text/strict-json.ts";
import type { SigningAlgorithm } from "./algorithms.ts";
import type { FoundKey } from "./key-directory.ts";
import type { NamedKey } from "./key-making.ts";

/** The members that determine the state of one of our own keys, in seconds since the epoch. */
interface KeyDates {
  /** When it was created. */
  readonly iat: number;
  /** When it starts to sign. */
  readonly nbf: number;
}

export interface NewKey extends KeyDates, NamedKey {
  readonly alg: SigningAlgorithm;
}

/**
 * Writes a key to a new file, as a JWK with mode 0600. Readers of the directory see either the whole file or no file.
 * Rejects with EEXIST if the file exists.
 */
export async function writeNewKey(file: string, { key, ...members }: NewKey): Promise<void> {
  const jwk = { ...key.export({ format: "jwk" }), use: "sig", ...members };
  const draft = await writeDraft(file, jwk);
  try {
    // Unlike a rename, this never replaces a file.
    await link(draft, file);
  } finally {
    await rm(draft);
  }
}

/**
 * Changes when the key in a file expires. A PEM file becomes a JWK, since PEM has no field for an expiry. Keeps owner
 * and mode, but removes the permissions of others.
 *
 * @param exp seconds since the epoch.
 * @returns the file that holds the key now.
 */
export async function writeExpiry(found: FoundKey, exp: number): Promise<string> {
  const { file, key, algorithm, madeAt } = found;
  const jwk = jwkIn(await readFile(file, "utf8"));
  const target = jwk === undefined ? `${file.replace(/\.pem$/, "")}.jwk` : file;
  const { mode, uid, gid } = await stat(file);
  // Without an `iat`, the key would count as created now.
  const known = { iat: Math.floor(madeAt / 1000), alg: algorithm };
  const members = jwk ?? key.export({ format: "jwk" });
  const draft = await writeDraft(target, { ...known, ...members, exp });
  try {
    const own = await stat(draft);
    if (own.uid !== uid || own.gid !== gid) await chown(draft, uid, gid);
    await chmod(draft, mode & 0o770);
    if (target === file) {
      await rename(draft, file);
    } else {
      await link(draft, target);
      await rm(file);
    }
  } finally {
    await rm(draft, { force: true });
  }
  return target;
}

function jwkIn(text: string): Record<string, unknown> | undefined {
  if (!text.trimStart().startsWith("{")) return undefined;
  const value = parseStrictJson(text);
  return isJsonObject(value) ? value : undefined;
}

/** Writes a draft beside the file, under a name that readers of the directory ignore. */
async function writeDraft(file: string, jwk: object): Promise<string> {
  const draft = join(dirname(file), `.${basename(file)}.${randomBytes(6).toString("hex")}`);
  await writeNewFile(draft, `${JSON.stringify(jwk, undefined, 2)}\n`);
  return draft;
}
