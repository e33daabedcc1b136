import { ConfigError } from "../core/config-problem.ts";
import type { Log } from "../core/log.ts";
import { type Clock, systemClock } from "../lib/clock.ts";
import type { SigningAlgorithm } from "./algorithms.ts";
import { type KeyFiles, keysIn, readKeyFiles } from "./key-directory.ts";
import { makeKey } from "./key-making.ts";
import { type KeyRing, keysAt, ringOf, type SigningKeys } from "./key-ring.ts";

export type { SigningKeys } from "./key-ring.ts";

export interface SigningKeyOptions {
  readonly algorithm: SigningAlgorithm;
  /** Where the key files are; left out, a key is made. */
  readonly directory?: string | undefined;
  readonly log: Log;
  readonly clock?: Clock;
}

/** A key that ends with the process may be smaller: it is made while a start waits. */
const PASSING_RSA_BITS = 2048;

/**
 * What our keys are at this moment: the newest that goes with the configured algorithm and whose time has come signs, all
 * that have not ended verify. Throws `ConfigError` with every fault of the directory: a file that holds no key, a weak
 * key, no key at all, none for the algorithm.
 */
export async function loadSigningKeys(options: SigningKeyOptions): Promise<SigningKeys> {
  const { directory, clock = systemClock } = options;
  const ring =
    directory === undefined
      ? await passingKey(options)
      : await ringFrom(await readKeyFiles(directory), options);
  const { signing, verification } = keysAt(ring, clock.now());
  return { signing, verification };
}

/** A ring with one key, made now. */
export async function passingKey({
  algorithm,
  log,
  clock = systemClock,
}: SigningKeyOptions): Promise<KeyRing> {
  log.warn("A signing key was made: its tokens end with this process, other replicas refuse them");
  const key = makeKey(algorithm, PASSING_RSA_BITS);
  const times = { madeAt: clock.now(), signsFrom: 0, verifiesUntil: Infinity };
  return ringOf([{ file: undefined, key, algorithm, ...times }], algorithm);
}

/** The keys of a directory. Tells what should be seen to. Throws `ConfigError` with every fault. */
export async function ringFrom(
  files: KeyFiles,
  { algorithm, log, clock = systemClock }: SigningKeyOptions,
): Promise<KeyRing> {
  const { directory } = files;
  const found = keysIn(files, algorithm);
  const ring = await ringOf(found, algorithm);
  if (!ring.some(({ canSign }) => canSign) && found.some(({ key }) => key.type !== "public")) {
    throw new ConfigError([{ file: directory, message: `No key here can sign ${algorithm}` }]);
  }
  const exposed = found.filter((each) => each.exposed).map((each) => each.file);
  if (exposed.length > 0) log.warn("Signing keys can be read by other users", { files: exposed });
  const { signing, verification } = keysAt(ring, clock.now());
  if (found.every(({ key }) => key.type === "public")) {
    log.warn("There are public keys only: no tokens can be issued", { directory });
  }
  log.info("Keys were loaded", { signing: signing?.kid, keys: verification.length });
  return ring;
}
