import type { Change } from "../../core/change.ts";
import { ConfigError, describeProblem } from "../../core/config-problem.ts";
import type { Reloaded } from "../../core/status.ts";
import { type Clock, LONGEST_TIMER_MS, systemClock } from "../../lib/clock.ts";
import { watchDirectory } from "../../lib/files/watched-directory.ts";
import { type KeyFiles, keysIn, readKeyFiles } from "./key-directory.ts";
import { createKeyRing, type KeyRing, keysAt, type SigningKeys } from "./key-ring.ts";
import { OwnKeys } from "./own-keys.ts";
import type { Log } from "../../core/log.ts";
import type { SigningAlgorithm } from "./algorithms.ts";
import { makeKey } from "./key-making.ts";

/**
 * Returns the keys of the previous ring that the new one lacks. They still verify what they signed recently.
 *
 * @param until when the last of what they signed has expired, in milliseconds since the epoch.
 */
function departedKeys(before: KeyRing, ring: KeyRing, until: number): KeyRing {
  const kept = new Set(ring.map(({ kid }) => kid));
  return before
    .filter(({ kid }) => !kept.has(kid))
    .map((key) => ({ ...key, verifiesUntil: Math.min(key.verifiesUntil, until) }));
}

/** What our own keys sign. */
type KeyPurpose = "tokens" | "assertions";

type Details = Readonly<Record<string, unknown>>;

/** Returns functions that log what happens to our own keys. */
function keyLog(log: Log, purpose: KeyPurpose = "tokens") {
  if (purpose === "tokens") {
    return {
      generated: () =>
        log.warn(
          "an ephemeral signing key was generated: its tokens end with this process, and other replicas refuse them",
        ),
      exposed: (details: Details) => log.warn("signing keys can be read by other users", details),
      loaded: (details: Details) => log.info("the signing keys were loaded", details),
      unusable: (details: Details) =>
        log.error("the signing keys cannot be used: the old keys stay in use", details),
      another: (details: Details) => log.info("another key signs now", details),
      none: (details: Details) =>
        log.error("no key signs at this time: nobody can log in", details),
    };
  }
  return {
    generated: () =>
      log.warn(
        "an ephemeral key for assertions was generated: only the key set of this process has it",
      ),
    exposed: (details: Details) =>
      log.warn("keys of assertions can be read by other users", details),
    loaded: (details: Details) => log.info("the keys of assertions were loaded", details),
    unusable: (details: Details) =>
      log.error("the keys of assertions cannot be used: the old keys stay in use", details),
    another: (details: Details) => log.info("another key signs assertions now", details),
    none: (details: Details) =>
      log.error(
        "no key signs assertions at this time: routes with assertion: true answer 503",
        details,
      ),
  };
}

/** The part of the options that a configuration determines. */
export interface OwnKeySettings {
  /** What the keys sign. Default: tokens. */
  readonly purpose?: KeyPurpose | undefined;
  readonly algorithm: SigningAlgorithm;
  /** The content of the key directory; without it, an ephemeral key is generated. */
  readonly files?: KeyFiles | undefined;
  /** Whether there are users, and so tokens to issue. If so, at least one key must be able to sign. */
  readonly issues?: boolean | undefined;
  /** Whether there is nothing to sign. There are no keys then. */
  readonly unused?: boolean | undefined;
  /**
   * Maximum lifetime of what the keys sign, in milliseconds. After a change of the settings, the old keys stay
   * published that long. If undefined, they are removed at once.
   */
  readonly lifetime?: number | undefined;
}

interface OwnKeyOptions extends OwnKeySettings {
  readonly log: Log;
  readonly clock?: Clock;
  readonly reloaded?: Reloaded;
}

/** Bits of an ephemeral RSA key. Smaller than other keys, since startup waits for its generation. */
const EPHEMERAL_RSA_BITS = 2048;

/**
 * Returns our keys at this moment. Of the keys for the configured algorithm whose time to sign has come, the newest
 * signs. All keys that have not expired verify. Throws `ConfigError` with all problems of the directory: a file without
 * a key, a weak key, no key at all, or no key for the algorithm.
 */
export async function loadSigningKeys(options: OwnKeyOptions): Promise<SigningKeys> {
  const { clock = systemClock } = options;
  const { ring } = await readingOf(options);
  const { signing, verification } = keysAt(ring, clock.now());
  return { signing, verification };
}

/** Generates a key that lives as long as the process, and returns a ring with it. */
export async function ephemeralKey({
  purpose,
  algorithm,
  log,
  clock = systemClock,
}: OwnKeyOptions): Promise<KeyRing> {
  keyLog(log, purpose).generated();
  const key = makeKey(algorithm, EPHEMERAL_RSA_BITS);
  const times = { madeAt: clock.now(), signsFrom: 0, verifiesUntil: Infinity };
  return createKeyRing([{ file: undefined, key, algorithm, ...times }], algorithm);
}

/** Returns the keys of a directory and logs warnings about it. Throws `ConfigError` with all problems. */
async function loadKeyRing(
  files: KeyFiles,
  { purpose, algorithm, issues = false, log, clock = systemClock }: OwnKeyOptions,
): Promise<KeyRing> {
  const { directory } = files;
  // Any of them can add the newest key and sign tokens in any name.
  if (files.openToAll) {
    const message = "every user of this machine can add keys to this directory";
    throw new ConfigError([{ file: directory, message, hint: `chmod o-w ${directory}` }]);
  }
  const found = keysIn(files, algorithm);
  const ring = await createKeyRing(found, algorithm);
  const publicAlone = found.every(({ key }) => key.type === "public");
  if (!ring.some(({ canSign }) => canSign) && (issues || !publicAlone)) {
    const message = `no key here can sign ${algorithm}`;
    const forTokens = "add a private key, or leave out users";
    const hint = purpose === "assertions" ? "add a private key" : forTokens;
    throw new ConfigError([{ file: directory, message, ...(publicAlone ? { hint } : {}) }]);
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
 * Opens our own keys and follows changes of their directory. A broken directory keeps the old keys and logs the error.
 * Throws `ConfigError` with all problems if the files cannot be used at start.
 */
export async function openOwnKeys(options: OwnKeyOptions): Promise<WatchedKeys> {
  return new WatchedKeys(await readingOf(options), options);
}

/** Returns the options to keep: without the files, which contain private keys. */
function keptOf({ files, lifetime: _changes, ...rest }: OwnKeyOptions) {
  return { clock: systemClock, ...rest, directory: files?.directory };
}

/** Replaces the fingerprint of a directory that is missing or cannot be read. */
const NO_FINGERPRINT = "";

interface Reading extends Pick<KeyFiles, "fingerprint" | "readAt"> {
  readonly ring: KeyRing;
}

async function readingOf(options: OwnKeyOptions): Promise<Reading> {
  const { files, unused = false } = options;
  if (unused || files === undefined) {
    const ring = unused ? [] : await ephemeralKey(options);
    return { ring, fingerprint: NO_FINGERPRINT, readAt: 0 };
  }
  const { fingerprint, readAt } = files;
  return { ring: await loadKeyRing(files, options), fingerprint, readAt };
}

export class WatchedKeys extends OwnKeys {
  #options: ReturnType<typeof keptOf>;
  #seen: string;
  #readAt: number;
  #signer: string | undefined;
  #watch: { close(): void } | undefined;
  /** Runs until the next key starts or stops to sign. */
  #changing: NodeJS.Timeout | undefined;
  #closed = false;
  #lifetime: number | undefined;
  /** The paths of the files in the directory at the last reading. */
  #paths: readonly string[] = [];
  /** Keys of earlier settings that stay published for a while. */
  #departed: KeyRing = [];
  /** When keys were removed from the directory before they had expired, by their ids. */
  readonly removed = new Map<string, number>();

  constructor({ ring, fingerprint, readAt }: Reading, options: OwnKeyOptions) {
    const kept = keptOf(options);
    super(ring, kept.clock);
    this.#options = kept;
    this.#lifetime = options.lifetime;
    this.#seen = fingerprint;
    this.#readAt = readAt;
    this.#signer = this.signing?.kid;
    if (this.#signer === undefined) this.#logNoSigner();
    this.#awaitChange();
    this.#begin();
  }

  /**
   * Prepares a change to other files or another algorithm. Files of the same directory are handled as if the watch had
   * read them. Throws `ConfigError` if the keys cannot be used.
   */
  async prepare(next: OwnKeySettings): Promise<Change> {
    const { algorithm, directory, issues, unused } = this.#options;
    const { files, lifetime } = next;
    const rollback = (): void => undefined;
    const same = next.algorithm === algorithm && files?.directory === directory;
    if (same && next.issues === issues && next.unused === unused) {
      const commit = (): Promise<void> => {
        this.#lifetime = lifetime;
        return this.#takeAndLog(files);
      };
      return { commit, rollback };
    }
    const options = { ...this.#options, ...next };
    const reading = await readingOf(options);
    return { commit: async () => this.#move(reading, options), rollback };
  }

  #move({ ring, fingerprint, readAt }: Reading, options: OwnKeyOptions): void {
    const kept = keptOf(options);
    const { unused, clock, reloaded } = kept;
    this.#options = kept;
    this.#seen = fingerprint;
    this.#readAt = readAt;
    // The current keys stay published while what they signed is valid.
    if (this.#lifetime !== undefined) {
      const departed = departedKeys(this.ring, ring, clock.now() + this.#lifetime);
      // If no keys replace them, they still sign in threads that have not yet learned of the change.
      this.#departed =
        unused === true
          ? departed
          : departed.map((key) => ({ ...key, key: key.verifier, canSign: false }));
    }
    this.#lifetime = options.lifetime;
    this.replace([...ring, ...this.#departed]);
    reloaded?.([]);
    this.#logSigner();
    this.#begin();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#changing);
    this.#watch?.close();
  }

  #begin(): void {
    this.#watch?.close();
    const { directory } = this.#options;
    const check = (): Promise<void> => this.#look();
    this.#watch =
      directory === undefined ? undefined : watchDirectory(directory, check, () => this.#paths);
  }

  async #look(): Promise<void> {
    const options = this.#options;
    if (options.directory === undefined) return;
    const began = performance.now();
    let files: KeyFiles | undefined;
    try {
      files = await readKeyFiles(options.directory);
      this.#paths = files.files.map(({ file }) => file);
    } catch (error) {
      if (options !== this.#options) return;
      if (this.#seen !== NO_FINGERPRINT) this.#reportUnusable(error);
      this.#seen = NO_FINGERPRINT;
      this.#readAt = began;
    }
    if (options === this.#options) await this.#takeAndLog(files);
  }

  async #takeAndLog(files: KeyFiles | undefined): Promise<void> {
    if (files !== undefined) await this.#take(files);
    this.#logSigner();
  }

  /** Applies each content once. Ignores a content that was read before the one applied last. */
  async #take(files: KeyFiles): Promise<void> {
    const options = this.#options;
    if (files.readAt < this.#readAt) return;
    this.#readAt = files.readAt;
    if (files.fingerprint === this.#seen) return;
    this.#seen = files.fingerprint;
    try {
      const ring = await loadKeyRing(files, options);
      if (options !== this.#options) return; // the settings have changed meanwhile
      const kids = new Set(ring.map(({ kid }) => kid));
      const next = [...ring, ...this.#departed.filter(({ kid }) => !kids.has(kid))];
      this.#noteRemoved(next);
      this.replace(next);
      options.reloaded?.([]);
    } catch (error) {
      if (options === this.#options) this.#reportUnusable(error);
    }
  }

  /**
   * What a key has signed is refused once its file is gone: that should not happen while it signs, or before it has expired. Of a
   * key that never expires, nothing else says until when it signed.
   */
  #noteRemoved(next: KeyRing): void {
    const { directory, log, clock } = this.#options;
    const now = clock.now();
    for (const { kid } of next) this.removed.delete(kid);
    for (const { kid, signsFrom, verifiesUntil } of departedKeys(this.ring, next, Infinity)) {
      const ended = verifiesUntil === Infinity ? kid !== this.signing?.kid : verifiesUntil <= now;
      if (ended || signsFrom > now) continue;
      this.removed.set(kid, now);
      log.warn("a signing key was removed: what it signed is refused", { kid, directory });
    }
  }

  /** The message of an unexpected error may quote the file, so only its name is reported. */
  #reportUnusable(error: unknown): void {
    const { log, directory = "", reloaded, purpose } = this.#options;
    const problems =
      error instanceof ConfigError
        ? error.problems.map(describeProblem)
        : [`${directory}: ${error instanceof Error ? error.name : "unknown error"}`];
    keyLog(log, purpose).unusable({ directory, problems });
    reloaded?.(problems);
  }

  #logSigner(): void {
    this.#awaitChange();
    const kid = this.signing?.kid;
    if (kid === this.#signer) return;
    this.#signer = kid;
    const { log, purpose } = this.#options;
    if (kid === undefined) this.#logNoSigner();
    else keyLog(log, purpose).another({ signing: kid });
  }

  /** Logs the next change of the signing key when it happens. The readings of the directory come up to 30 s later. */
  #awaitChange(): void {
    clearTimeout(this.#changing);
    const waitMs = this.changesAt - this.#options.clock.now();
    // After a longer time, a reading of the directory comes first.
    if (this.#closed || waitMs > LONGEST_TIMER_MS) return;
    this.#changing = setTimeout(() => this.#logSigner(), waitMs).unref();
  }

  /** Logs nothing if there are only public keys: that was logged when they were read. */
  #logNoSigner(): void {
    const { log, directory, purpose } = this.#options;
    if (!this.ring.some(({ canSign }) => canSign)) return;
    keyLog(log, purpose).none({ directory });
  }
}
