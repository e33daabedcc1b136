import { join } from "node:path";
import type { SigningAlgorithm } from "../../tokens/algorithms.ts";
import { makeNamedKey } from "../../tokens/key-making.ts";
import { writeNewKey } from "../../tokens/written-key.ts";
import { UsageError } from "../command.ts";

interface KeyOrder {
  readonly directory: string;
  readonly algorithm: SigningAlgorithm;
  /** Of the file, without its ending; left out, the day and the beginning of the key's id. */
  readonly name: string | undefined;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  /** When the newest of the keys there was made: the new one is newer, by a second at least. */
  readonly newestMs: number;
  readonly signsFromMs: number;
}

/** What a Kubernetes Secret takes as a name, without a dot at the beginning: such files are passed over. */
const NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/;

/** Makes a key and writes it. @throws UsageError for a name that cannot be one or is taken. */
export async function makeKeyFile(order: KeyOrder): Promise<{ kid: string; file: string }> {
  const { directory, algorithm, nowMs, newestMs, signsFromMs } = order;
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
    const taken = error instanceof Error && "code" in error && error.code === "EEXIST";
    throw taken ? new UsageError(`${file} is there already; say another --name`) : error;
  }
  return { kid, file };
}
