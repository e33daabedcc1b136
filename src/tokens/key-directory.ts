import type { KeyObject } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError, type ConfigProblem } from "../core/config-problem.ts";
import { algorithmOf, type SigningAlgorithm, weaknessOf } from "./algorithms.ts";
import { KeyFormatError, readKey } from "./key-file.ts";

/** A key of a directory, sound and with its algorithm. */
export interface FoundKey {
  readonly file: string;
  readonly key: KeyObject;
  readonly algorithm: SigningAlgorithm;
  /** Whether a private key or secret can be read by the file's group or by everybody. */
  readonly exposed: boolean;
}

interface DatedKey extends FoundKey {
  /** In seconds since the epoch. */
  readonly madeAt: number;
}

const LARGEST_FILE = 65_536;
const byName = new Intl.Collator("en", { numeric: true });

/**
 * Reads every key file of a directory, newest first. A key's age is the `iat` of its JWK, else when its file was written, to
 * the minute: the files of a Kubernetes Secret are all written at once, in any order, and then the last name is the newest.
 * Names that begin with a dot (`..data`) and directories are passed over. Throws `ConfigError` with every fault found.
 */
export async function readKeyDirectory(
  directory: string,
  configured: SigningAlgorithm,
): Promise<readonly FoundKey[]> {
  const found: DatedKey[] = [];
  const problems: ConfigProblem[] = [];
  for (const name of await visibleNames(directory)) {
    const file = join(directory, name);
    try {
      const key = await readKeyFile(file, configured);
      if (key !== undefined) found.push(key);
    } catch (error) {
      problems.push({ file, message: `This is no usable key: ${reasonOf(error)}` });
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
    return (await readdir(directory)).filter((name) => !name.startsWith("."));
  } catch (error) {
    const message = `The directory of keys cannot be read: ${reasonOf(error)}`;
    throw new ConfigError([{ file: directory, message }]);
  }
}

async function readKeyFile(
  file: string,
  configured: SigningAlgorithm,
): Promise<DatedKey | undefined> {
  const stats = await stat(file);
  if (stats.isDirectory()) return undefined;
  if (!stats.isFile()) throw new KeyFormatError("not a regular file");
  const { mode, mtimeMs, size } = stats;
  if (size > LARGEST_FILE) throw new KeyFormatError(`larger than ${LARGEST_FILE} bytes`);
  const { key, algorithm: named, issuedAt } = readKey(await readFile(file, "utf8"));
  const weakness = weaknessOf(key);
  if (weakness !== undefined) throw new KeyFormatError(weakness);
  const algorithm = algorithmOf(key, named, configured);
  if (algorithm === undefined) throw new KeyFormatError('"alg" does not go with this key');
  const madeAt = issuedAt ?? Math.floor(mtimeMs / 60_000) * 60;
  const exposed = key.type !== "public" && (mode & 0o077) !== 0;
  return { file, key, algorithm, exposed, madeAt };
}

/** The message of a fault of the file, or the code of a system error; never content. */
function reasonOf(error: unknown): string {
  if (error instanceof KeyFormatError) return error.message;
  return error instanceof Error && "code" in error ? String(error.code) : "it cannot be read";
}
