import { ConfigError } from "../../core/config-problem.ts";
import type { Log } from "../../core/log.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import type { SigningAlgorithm } from "./algorithms.ts";
import { type KeyFiles, keysIn } from "./key-directory.ts";
import { keyLog, type KeyPurpose } from "./key-log.ts";
import { makeKey } from "./key-making.ts";
import { type KeyRing, keysAt, createKeyRing, type SigningKeys } from "./key-ring.ts";

export type { SigningKeys } from "./key-ring.ts";

export interface SigningKeyOptions {
  /** What the keys sign. Default: tokens. */
  readonly purpose?: KeyPurpose | undefined;
  readonly algorithm: SigningAlgorithm;
  /** The content of the key directory; without it, an ephemeral key is generated. */
  readonly files?: KeyFiles | undefined;
  /** Whether there are users, and so tokens to issue. If so, at least one key must be able to sign. */
  readonly issues?: boolean | undefined;
  readonly log: Log;
  readonly clock?: Clock;
}

/** Bits of an ephemeral RSA key. Smaller than other keys, since startup waits for its generation. */
const EPHEMERAL_RSA_BITS = 2048;

/**
 * Returns our keys at this moment. Of the keys for the configured algorithm whose time to sign has come, the newest
 * signs. All keys that have not expired verify. Throws `ConfigError` with all problems of the directory: a file without
 * a key, a weak key, no key at all, or no key for the algorithm.
 */
export async function loadSigningKeys(options: SigningKeyOptions): Promise<SigningKeys> {
  const { files, clock = systemClock } = options;
  const ring =
    files === undefined ? await ephemeralKey(options) : await loadKeyRing(files, options);
  const { signing, verification } = keysAt(ring, clock.now());
  return { signing, verification };
}

/** Generates a key that lives as long as the process, and returns a ring with it. */
export async function ephemeralKey({
  purpose,
  algorithm,
  log,
  clock = systemClock,
}: SigningKeyOptions): Promise<KeyRing> {
  keyLog(log, purpose).generated();
  const key = makeKey(algorithm, EPHEMERAL_RSA_BITS);
  const times = { madeAt: clock.now(), signsFrom: 0, verifiesUntil: Infinity };
  return createKeyRing([{ file: undefined, key, algorithm, ...times }], algorithm);
}

/** Returns the keys of a directory and logs warnings about it. Throws `ConfigError` with all problems. */
export async function loadKeyRing(
  files: KeyFiles,
  { purpose, algorithm, issues = false, log, clock = systemClock }: SigningKeyOptions,
): Promise<KeyRing> {
  const { directory } = files;
  if (files.openToAll) throw openToAll(directory);
  const found = keysIn(files, algorithm);
  const ring = await createKeyRing(found, algorithm);
  const publicAlone = found.every(({ key }) => key.type === "public");
  if (!ring.some(({ canSign }) => canSign) && (issues || !publicAlone)) {
    const message = `no key here can sign ${algorithm}`;
    const hint = publicAlone
      ? purpose === "assertions"
        ? "add a private key"
        : "add a private key, or leave out users"
      : undefined;
    throw new ConfigError([{ file: directory, message, ...(hint === undefined ? {} : { hint }) }]);
  }
  const exposed = found.filter((each) => each.exposed).map((each) => each.file);
  if (exposed.length > 0) keyLog(log, purpose).exposed({ files: exposed });
  const { signing, verification } = keysAt(ring, clock.now());
  if (publicAlone) {
    log.warn("there are only public keys: no tokens can be issued", { directory });
  }
  keyLog(log, purpose).loaded({ signing: signing?.kid, keys: verification.length });
  return ring;
}

/**
 * Returns the files with private keys that other users can read.
 *
 * @throws ConfigError with all problems.
 */
export function exposedKeys(files: KeyFiles, algorithm: SigningAlgorithm): readonly string[] {
  const found = keysIn(files, algorithm);
  return found.filter(({ exposed }) => exposed).map(({ file }) => file);
}

/** The error for a directory that every user can write to: any of them can add the newest key and sign tokens in any name. */
function openToAll(directory: string): ConfigError {
  const message = "every user of this machine can add keys to this directory";
  return new ConfigError([{ file: directory, message, hint: `chmod o-w ${directory}` }]);
}
