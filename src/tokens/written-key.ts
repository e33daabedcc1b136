import { randomBytes } from "node:crypto";
import { chmod, chown, link, open, readFile, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isJsonObject, parseStrictJson } from "../lib/strict-json.ts";
import type { SigningAlgorithm } from "./algorithms.ts";
import type { FoundKey } from "./key-directory.ts";
import type { NamedKey } from "./key-making.ts";

/** The members that say what state a key of ours is in. Seconds since the epoch. */
interface KeyDates {
  /** When it was made. */
  readonly iat: number;
  /** From when on it signs. */
  readonly nbf: number;
}

export interface NewKey extends KeyDates, NamedKey {
  readonly alg: SigningAlgorithm;
}

/**
 * Writes a key into a new file, as a JWK with mode 0600. Whoever reads the directory sees the whole file or none. Rejects
 * with EEXIST when there is a file of that name.
 */
export async function writeNewKey(file: string, { key, ...members }: NewKey): Promise<void> {
  const jwk = { ...key.export({ format: "jwk" }), use: "sig", ...members };
  const draft = await writeDraft(file, jwk);
  try {
    // Other than a rename, this never replaces.
    await link(draft, file);
  } finally {
    await rm(draft);
  }
}

/**
 * Gives the file of a key another end. A PEM file becomes a JWK, since a PEM cannot say when it ends. Owner and mode stay,
 * but for the rights of everybody.
 * @param exp seconds since the epoch.
 * @returns the file that it is in now.
 */
export async function writeEnd(found: FoundKey, exp: number): Promise<string> {
  const { file, key, algorithm, madeAt } = found;
  const jwk = jwkIn(await readFile(file, "utf8"));
  const target = jwk === undefined ? `${file.replace(/\.pem$/, "")}.jwk` : file;
  const { mode, uid, gid } = await stat(file);
  // Without an `iat` it would count as made when this is written.
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

/** Beside the file, under a name that readers of the directory pass over. */
async function writeDraft(file: string, jwk: object): Promise<string> {
  const draft = join(dirname(file), `.${basename(file)}.${randomBytes(6).toString("hex")}`);
  const handle = await open(draft, "wx", 0o600);
  try {
    await handle.writeFile(`${JSON.stringify(jwk, undefined, 2)}\n`);
    await handle.sync();
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
  return draft;
}
