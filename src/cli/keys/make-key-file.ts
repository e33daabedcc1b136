import { join } from "node:path";
import type { SigningAlgorithm } from "../../tokens/keys/algorithms.ts";
import { makeNamedKey } from "../../tokens/keys/key-making.ts";
import { writeNewKey } from "../../tokens/keys/written-key.ts";
import { UsageError } from "../command.ts";
import { systemCode } from "../../lib/text/error-code.ts";

interface NewKeyOptions {
  readonly directory: string;
  readonly algorithm: SigningAlgorithm;
  /** The file name without its ending; by default the date and the beginning of the kid. */
  readonly name: string | undefined;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  /** When the newest existing key was made, if there is one. The `iat` of the new key is at least a second later. */
  readonly newestMs: number | undefined;
  readonly signsFromMs: number;
}

/** Valid names of files in a Kubernetes Secret, except those with a leading dot: Sallyport ignores such files. */
const NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/;

/**
 * Generates a key and writes it to a new file.
 *
 * @throws UsageError for a name that is invalid or taken.
 */
export async function makeKeyFile(order: NewKeyOptions): Promise<{ kid: string; file: string }> {
  const { directory, algorithm, nowMs, newestMs = 0, signsFromMs } = order;
  const { kid, key } = await makeNamedKey(algorithm);
  const name = order.name ?? `${new Date(nowMs).toISOString().slice(0, 10)}-${kid.slice(0, 8)}`;
  if (!NAME.test(name))
    throw new UsageError(`--name takes letters, digits, . _ and -, not ${name}`);
  const file = join(directory, `${name.replace(/\.jwk$/, "")}.jwk`);
  const iat = Math.max(Math.floor(nowMs / 1000), Math.floor(newestMs / 1000) + 1);
  const dates = { iat, nbf: Math.floor(signsFromMs / 1000) };
  try {
    await writeNewKey(file, { kid, key, alg: algorithm, ...dates });
  } catch (error) {
    const taken = systemCode(error) === "EEXIST";
    throw taken ? new UsageError(`${file} already exists; choose another --name`) : error;
  }
  return { kid, file };
}
