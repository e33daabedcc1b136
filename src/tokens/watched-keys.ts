import type { Change } from "../core/change.ts";
import { ConfigError, describeProblem } from "../core/config-problem.ts";
import { systemClock } from "../lib/clock.ts";
import { watchDirectory } from "../lib/watched-directory.ts";
import { type KeyFiles, readKeyFiles } from "./key-directory.ts";
import type { KeyRing } from "./key-ring.ts";
import { HeldKeys } from "./own-keys.ts";
import { passingKey, ringFrom, type SigningKeyOptions } from "./signing-keys.ts";

export interface WatchedKeyOptions extends SigningKeyOptions {
  /** Told whenever the directory has been read again because it is another. */
  readonly reloaded?: (successful: boolean) => void;
}

/**
 * Our keys, read again when their directory changes; a broken one keeps the old keys and says so. Throws `ConfigError`
 * with every fault when the directory cannot be used at the start.
 */
export async function openOwnKeys(options: WatchedKeyOptions): Promise<WatchedKeys> {
  return new WatchedKeys(await read(options), options);
}

/** Instead of the fingerprint of a directory that cannot be read, and of one that there is not. */
const NOTHING = "";

interface Reading {
  readonly ring: KeyRing;
  readonly fingerprint: string;
}

async function read(options: SigningKeyOptions): Promise<Reading> {
  const { directory } = options;
  if (directory === undefined) return { ring: await passingKey(options), fingerprint: NOTHING };
  const files = await readKeyFiles(directory);
  return { ring: await ringFrom(files, options), fingerprint: files.fingerprint };
}

export class WatchedKeys extends HeldKeys {
  #options: WatchedKeyOptions;
  #seen: string;
  #signer: string | undefined;
  #watch: { close(): void } | undefined;

  constructor({ ring, fingerprint }: Reading, options: WatchedKeyOptions) {
    super(ring, options.clock ?? systemClock);
    this.#options = options;
    this.#seen = fingerprint;
    this.#signer = this.signing?.kid;
    if (this.#signer === undefined) this.#tellOfNoSigner();
    this.#begin();
  }

  /**
   * Prepares to take the keys from elsewhere, or for another algorithm. Where it is the same, the directory is looked at when
   * the change is put in force. Throws `ConfigError` when the keys there cannot be used.
   */
  async prepare(place: Pick<SigningKeyOptions, "algorithm" | "directory">): Promise<Change> {
    const { algorithm, directory } = this.#options;
    const drop = (): void => undefined;
    if (place.algorithm === algorithm && place.directory === directory) {
      return { commit: () => this.#look(), drop };
    }
    const options: WatchedKeyOptions = { ...this.#options, ...place };
    const reading = await read(options);
    return { commit: async () => this.#move(options, reading), drop };
  }

  #move(options: WatchedKeyOptions, { ring, fingerprint }: Reading): void {
    this.#options = options;
    this.#seen = fingerprint;
    this.replace(ring);
    options.reloaded?.(true);
    this.#tellOfSigner();
    this.#begin();
  }

  close(): void {
    this.#watch?.close();
  }

  #begin(): void {
    this.#watch?.close();
    const { directory } = this.#options;
    this.#watch =
      directory === undefined ? undefined : watchDirectory(directory, () => this.#look());
  }

  async #look(): Promise<void> {
    const options = this.#options;
    if (options.directory === undefined) return;
    try {
      const files = await readKeyFiles(options.directory);
      if (options === this.#options) await this.#take(files, options);
    } catch (error) {
      if (options !== this.#options) return;
      if (this.#seen !== NOTHING) this.#tellUnusable(error);
      this.#seen = NOTHING;
    }
    this.#tellOfSigner();
  }

  /** Each content counts once. */
  async #take(files: KeyFiles, options: WatchedKeyOptions): Promise<void> {
    if (files.fingerprint === this.#seen) return;
    this.#seen = files.fingerprint;
    try {
      const ring = await ringFrom(files, options);
      if (options !== this.#options) return; // they are taken from elsewhere by now
      this.replace(ring);
      options.reloaded?.(true);
    } catch (error) {
      if (options === this.#options) this.#tellUnusable(error);
    }
  }

  /** An unforeseen error may quote what it could not read, so only its kind is told. */
  #tellUnusable(error: unknown): void {
    const { log, directory = "", reloaded } = this.#options;
    const problems =
      error instanceof ConfigError
        ? error.problems.map(describeProblem)
        : [`${directory}: ${error instanceof Error ? error.name : "unknown error"}`];
    log.error("The signing keys cannot be used, the old keys stay", { directory, problems });
    reloaded?.(false);
  }

  #tellOfSigner(): void {
    const kid = this.signing?.kid;
    if (kid === this.#signer) return;
    this.#signer = kid;
    if (kid === undefined) this.#tellOfNoSigner();
    else this.#options.log.info("Another key signs now", { signing: kid });
  }

  /** That there are public keys alone was told when they were read. */
  #tellOfNoSigner(): void {
    const { log, directory } = this.#options;
    if (!this.ring.some(({ canSign }) => canSign)) return;
    log.error("No key signs at this time, nobody can log in", { directory });
  }
}
