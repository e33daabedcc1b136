import { hash, type KeyObject } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError, type ConfigProblem } from "../../core/config-problem.ts";
import { isExposed, isOpenToAll, describePermissions } from "../../lib/files/private-file.ts";
import { algorithmOf, type SigningAlgorithm, weaknessOf } from "./algorithms.ts";
import { KeyFormatError, readKey } from "./key-file.ts";
import { systemCode } from "../../lib/text/error-code.ts";

/** A usable key of a directory, with its algorithm. Times are milliseconds since the epoch. */
export interface FoundKey {
  readonly file: string;
  readonly key: KeyObject;
  readonly algorithm: SigningAlgorithm;
  readonly madeAt: number;
  /** 0 if it may sign at once. */
  readonly signsFrom: number;
  /** Infinity if it does not expire. */
  readonly verifiesUntil: number;
  /** Whether other users can read the private key or secret. */
  readonly exposed: boolean;
}

/** The content of a directory: its files, or why they could not be read. */
export interface KeyFiles {
  readonly directory: string;
  readonly files: readonly KeyFile[];
  /** Whether every user of this machine can add a key. */
  readonly openToAll: boolean;
  /** Equal fingerprints mean equal content. */
  readonly fingerprint: string;
  /** When the reading began, in milliseconds of `performance.now()`. */
  readonly readAt: number;
}

interface KeyFile {
  readonly file: string;
  /** Milliseconds since the epoch, rounded down to the minute. */
  readonly writtenAt: number;
  readonly open: boolean;
  readonly content: { readonly text: string } | { readonly fault: string };
}

const LARGEST_FILE = 65_536;
const byName = new Intl.Collator("en", { numeric: true });

/**
 * Reads every file of a directory. Ignores names that begin with a dot (`..data`), and directories. Throws
 * `ConfigError` if the directory itself cannot be read.
 */
export async function readKeyFiles(directory: string): Promise<KeyFiles> {
  const readAt = performance.now();
  const files: KeyFile[] = [];
  for (const name of await visibleNames(directory)) {
    const file = await readKeyFile(join(directory, name));
    if (file !== undefined) files.push(file);
  }
  const openToAll = isOpenToAll(directory, await stat(directory));
  const fingerprint = hash("sha256", JSON.stringify({ files, openToAll }));
  return { directory, files, openToAll, fingerprint, readAt };
}

/**
 * Returns the keys in these files, newest first. The age of a key is the `iat` of its JWK, else the time at which its
 * file was written, rounded down to the minute. Of keys of the same age, the last file name counts as the newest, since
 * the files of a Kubernetes Secret are all written at once and in any order. The `nbf` and `exp` of its JWK say when it
 * starts to sign and when it stops verifying. Throws `ConfigError` with all problems.
 */
export function keysIn(
  { directory, files }: KeyFiles,
  configured: SigningAlgorithm,
): readonly FoundKey[] {
  const found: FoundKey[] = [];
  const problems: ConfigProblem[] = [];
  for (const file of files) {
    const key = keyIn(file, configured);
    if (typeof key === "string") {
      problems.push({ file: file.file, message: `this is not a usable key: ${key}` });
    } else {
      found.push(key);
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
  if (found.length === 0) {
    const hint = "make one with sallyport keys generate";
    throw new ConfigError([{ file: directory, message: "this directory holds no keys", hint }]);
  }
  return found.toSorted((a, b) => b.madeAt - a.madeAt || byName.compare(b.file, a.file));
}

async function visibleNames(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).filter((name) => !name.startsWith(".")).toSorted();
  } catch (error) {
    const message = `the directory of keys cannot be read: ${systemCode(error) ?? "unknown error"}`;
    throw new ConfigError([{ file: directory, message }]);
  }
}

async function readKeyFile(file: string): Promise<KeyFile | undefined> {
  const bare = { file, writtenAt: 0, open: false };
  try {
    const stats = await stat(file);
    if (stats.isDirectory()) return undefined;
    if (!stats.isFile()) return { ...bare, content: { fault: "not a regular file" } };
    if (stats.size > LARGEST_FILE) {
      return { ...bare, content: { fault: `larger than ${LARGEST_FILE} bytes` } };
    }
    const writtenAt = Math.floor(stats.mtimeMs / 60_000) * 60_000;
    const text = await readFile(file, "utf8");
    return { file, writtenAt, open: isExposed(stats), content: { text } };
  } catch (error) {
    const code = systemCode(error) ?? "it cannot be read";
    const fault = code === "EACCES" ? `${code}: ${describePermissions(file)}` : code;
    return { ...bare, content: { fault } };
  }
}

/** Returns the key in a file, or why there is none, without quoting its content. */
function keyIn(
  { file, writtenAt, open, content }: KeyFile,
  configured: SigningAlgorithm,
): FoundKey | string {
  if ("fault" in content) return content.fault;
  try {
    const { key, algorithm: named, issuedAt, notBefore, expires } = readKey(content.text);
    const weakness = weaknessOf(key);
    if (weakness !== undefined) return weakness;
    const algorithm = algorithmOf(key, named, configured);
    if (algorithm === undefined) return '"alg" does not fit this key';
    return {
      file,
      key,
      algorithm,
      madeAt: issuedAt === undefined ? writtenAt : issuedAt * 1000,
      signsFrom: (notBefore ?? 0) * 1000,
      verifiesUntil: (expires ?? Infinity) * 1000,
      exposed: open && key.type !== "public",
    };
  } catch (error) {
    if (error instanceof KeyFormatError) return error.message;
    throw error;
  }
}
