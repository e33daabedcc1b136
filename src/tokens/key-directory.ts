import { hash, type KeyObject } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError, type ConfigProblem } from "../core/config-problem.ts";
import { isExposed } from "../lib/private-file.ts";
import { algorithmOf, type SigningAlgorithm, weaknessOf } from "./algorithms.ts";
import { KeyFormatError, readKey } from "./key-file.ts";

/** A key of a directory, sound and with its algorithm. Times are milliseconds since the epoch. */
export interface FoundKey {
  readonly file: string;
  readonly key: KeyObject;
  readonly algorithm: SigningAlgorithm;
  readonly madeAt: number;
  /** 0 when it may sign as soon as it is there. */
  readonly signsFrom: number;
  /** Infinity when it has no end. */
  readonly verifiesUntil: number;
  /** Whether a private key or secret can be read by others. */
  readonly exposed: boolean;
}

/** A directory as it was read: what its files hold, or why that could not be told. */
export interface KeyFiles {
  readonly directory: string;
  readonly files: readonly KeyFile[];
  /** Equal for equal content. */
  readonly fingerprint: string;
}

interface KeyFile {
  readonly file: string;
  /** To the minute, milliseconds since the epoch. */
  readonly writtenAt: number;
  readonly open: boolean;
  readonly content: { readonly text: string } | { readonly fault: string };
}

const LARGEST_FILE = 65_536;
const byName = new Intl.Collator("en", { numeric: true });

/**
 * Reads every file of a directory. Names that begin with a dot (`..data`) and directories are passed over. Throws
 * `ConfigError` when the directory itself cannot be read.
 */
export async function readKeyFiles(directory: string): Promise<KeyFiles> {
  const found: KeyFile[] = [];
  for (const name of await visibleNames(directory)) {
    const file = await readKeyFile(join(directory, name));
    if (file !== undefined) found.push(file);
  }
  return { directory, files: found, fingerprint: hash("sha256", JSON.stringify(found)) };
}

/**
 * The keys in these files, newest first. A key's age is the `iat` of its JWK, else when its file was written, to the minute:
 * the files of a Kubernetes Secret are all written at once, in any order, and then the last name is the newest. From when
 * on it signs, and until when it verifies, are the `nbf` and `exp` of its JWK. Throws `ConfigError` with every fault found.
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
      problems.push({ file: file.file, message: `This is no usable key: ${key}` });
    } else {
      found.push(key);
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
  if (found.length === 0) {
    throw new ConfigError([{ file: directory, message: "There are no keys in this directory" }]);
  }
  return found.toSorted((a, b) => b.madeAt - a.madeAt || byName.compare(b.file, a.file));
}

async function visibleNames(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).filter((name) => !name.startsWith(".")).toSorted();
  } catch (error) {
    const message = `The directory of keys cannot be read: ${codeOf(error)}`;
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
    return { ...bare, content: { fault: codeOf(error) } };
  }
}

/** The key in a file, or why there is none; never anything of its content. */
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
    if (algorithm === undefined) return '"alg" does not go with this key';
    return {
      ...{ file, key, algorithm },
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

/** The code of a system error. */
function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "it cannot be read";
}
