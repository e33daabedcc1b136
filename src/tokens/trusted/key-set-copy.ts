import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { replaceFile } from "../../lib/files/write-file.ts";
import { jsonObjectIn } from "../../lib/text/strict-json.ts";
import { systemCode } from "../../lib/text/error-code.ts";

/** A copy of a fetched key set in a file, for a start while the server is down. */
export interface KeySetCopy {
  readonly text: string;
  /** When it was fetched, in milliseconds since the epoch. */
  readonly fetchedAt: number;
  /** Its lifetime from then on, in milliseconds. */
  readonly lifeMs: number;
}

/** The owner of a copy. No other issuer may use it. */
export interface CopyOwner {
  readonly issuer: string;
  /** The configured address, or the address of the discovery document. */
  readonly source: string;
}

const LARGEST = 524_288;
/** A symbolic link could point to another file, and opening a pipe would block forever. */
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/** How far the time of a copy may be ahead of our clock, in milliseconds. */
const AHEAD_MS = 60_000;

/**
 * Reads a copy; undefined if there is none.
 *
 * Anybody who can write this file can sign tokens in the name of the issuer. So the file must belong to this user,
 * nobody else may be able to write to it, and its content is checked like a response from the server.
 *
 * @throws an `Error` that says why the copy cannot be used, without quoting it.
 */
export function readCopy(path: string, owner: CopyOwner, nowMs: number): KeySetCopy | undefined {
  const text = privateText(path);
  if (text === undefined) return undefined;
  const value = jsonObjectIn(text);
  if (value === undefined) throw new Error("it is not a JSON object");
  if (value["issuer"] !== owner.issuer || value["source"] !== owner.source) {
    throw new Error("it is a copy of other keys");
  }
  const { fetchedAt, lifeMs, keys } = value;
  if (typeof fetchedAt !== "number" || typeof lifeMs !== "number" || typeof keys !== "string") {
    throw new Error("it is not a copy of a key set");
  }
  if (!(fetchedAt <= nowMs + AHEAD_MS && lifeMs >= 0 && lifeMs <= nowMs)) {
    throw new Error("its times are impossible");
  }
  return { text: keys, fetchedAt: Math.min(fetchedAt, nowMs), lifeMs };
}

function privateText(path: string): string | undefined {
  let file: number;
  try {
    file = openSync(path, READ);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new Error("it is not a regular file");
    if (stats.size > LARGEST) throw new Error(`it is larger than ${LARGEST} bytes`);
    const own = process.getuid?.();
    if (own !== undefined && (stats.uid !== own || (stats.mode & 0o022) !== 0)) {
      throw new Error("others can write to it");
    }
    return readFileSync(file, "utf8");
  } finally {
    closeSync(file);
  }
}

/**
 * Replaces the copy atomically, with mode 0600. Rejects with the system's error; the old copy is unchanged then.
 * Several threads may do so at the same time.
 */
export async function writeCopy(path: string, owner: CopyOwner, copy: KeySetCopy): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString("hex")}.new`;
  const { text: keys, fetchedAt, lifeMs } = copy;
  const content = `${JSON.stringify({ ...owner, fetchedAt, lifeMs, keys })}\n`;
  await replaceFile(path, draft, content);
}
