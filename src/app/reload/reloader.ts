import { changedKeys, restartKeys } from "../../config/effective/changes.ts";
import {
  changedValues,
  type ConfigurationInForce,
  inForce,
  type ValueChange,
} from "../../config/effective/in-force.ts";
import type { InForce, Snapshot } from "../../config/snapshot.ts";
import { ConfigError, firstProblems, withoutSource } from "../../core/config-problem.ts";
import type { Log } from "../../core/log.ts";
import type { ReloadResult } from "../../core/reload-result.ts";
import { type FollowedFile, followFile } from "../../lib/files/watched-file.ts";

export interface ReloadOptions {
  /** The snapshot that the process was started with. */
  readonly start: Snapshot;
  /** Takes another snapshot and checks whether it can be used. Rejects with a `ConfigError`. */
  readonly read: (inForce: InForce) => Promise<Snapshot>;
  /** Puts a snapshot in force as a whole, or rejects and changes nothing. */
  readonly apply: (snapshot: Snapshot) => Promise<void>;
  /** Called after every attempt. */
  readonly reloaded: (successful: boolean) => void;
  readonly log: Log;
}

/** How the last reload ended. */
export interface LastReload {
  /** Wall clock, in milliseconds since the epoch. */
  readonly at: number;
  readonly result: ReloadResult;
  readonly changes: readonly ValueChange[];
}

/** The wait after a change, in milliseconds: certificate and key are often written one after the other. */
const SETTLE_MS = 200;
/**
 * The interval of retries after a failure, in milliseconds: a file that the configuration names may appear later, in a
 * directory that is not watched.
 */
const RETRY_MS = 1_500;

/** A snapshot without the contents of its files, which may be private keys. */
interface Remembered extends Omit<Snapshot, "files" | "missing">, InForce {}

function remember({ written, configuration, followed, effective, files }: Snapshot): Remembered {
  return { written, configuration, followed, effective, seen: files.seen() };
}

/** Reloads the configuration whenever its file changes, or one of the files that it names. */
export class Reloader {
  readonly #options: Omit<ReloadOptions, "start">;
  readonly #following: FollowedFiles;
  readonly #start: Remembered;
  #last: Remembered;
  #running: Promise<unknown> = Promise.resolve();
  /** The reload that starts when the running one ends. */
  #next: Promise<ReloadResult> | undefined;
  #settling: NodeJS.Timeout | undefined;
  #retrying: NodeJS.Timeout | undefined;
  #closed = false;
  /** The error logged last, so that retries do not repeat it. */
  #loggedError: string | undefined;
  #latest: { readonly at: number; readonly result: ReloadResult } | undefined;
  /** The snapshot that the last successful reload replaced. */
  #before: Remembered | undefined;

  constructor({ start, ...options }: ReloadOptions) {
    this.#options = options;
    this.#start = remember(start);
    this.#last = this.#start;
    this.#following = new FollowedFiles(() => {
      clearTimeout(this.#settling);
      this.#settling = setTimeout(() => void this.now(), SETTLE_MS).unref();
    });
    this.#following.follow(start.followed);
  }

  /** Reads and applies the configuration. Calls during a reload share the reload after it. Never rejects. */
  now(): Promise<ReloadResult> {
    this.#loggedError = undefined;
    return this.#again();
  }

  /** Returns the configuration in force, without secrets, and the keys that wait for a restart. */
  inForce(): ConfigurationInForce & { readonly needRestart: readonly string[] } {
    const [start, last] = [this.#start, this.#last];
    const needRestart = restartKeys(changedKeys(start.written, last.written));
    return { ...inForce(start.effective(), last.effective(), needRestart), needRestart };
  }

  /** Returns the last reload that failed, changed something, or ended a failure; undefined if there was none. */
  lastReload(): LastReload | undefined {
    if (this.#latest === undefined) return undefined;
    const values = (of: Remembered | undefined) =>
      of && inForce(of.effective(), of.effective(), []);
    const [before, after] = [values(this.#before)?.values ?? [], values(this.#last)?.values ?? []];
    const { at, result } = this.#latest;
    return { at, result, changes: result.successful ? changedValues(before, after) : [] };
  }

  /** Stops watching files. */
  close(): void {
    this.#closed = true;
    this.#clearTimers();
    this.#following.close();
  }

  #again(): Promise<ReloadResult> {
    this.#next ??= this.#running.then(() => this.#reload());
    this.#running = this.#next;
    return this.#next;
  }

  async #reload(): Promise<ReloadResult> {
    this.#clearTimers();
    this.#next = undefined;
    try {
      const snapshot = await this.#options.read(this.#last);
      await this.#options.apply(snapshot);
      return this.#ended(this.#succeeded(remember(snapshot)));
    } catch (error) {
      return this.#ended(this.#failed(error));
    }
  }

  #ended(result: ReloadResult): ReloadResult {
    const same = result.successful && result.changed.length + result.files.length === 0;
    const repaired = this.#latest?.result.successful === false;
    if (!same || repaired) this.#latest = { at: Date.now(), result };
    return result;
  }

  #succeeded(latest: Remembered): ReloadResult {
    const { log, reloaded } = this.#options;
    const before = this.#last;
    const changed = changedKeys(before.written, latest.written);
    const files = [...latest.followed.keys()].filter(
      (file) => before.followed.get(file) !== latest.followed.get(file),
    );
    const atRestart = restartKeys(changedKeys(this.#start.written, latest.written));
    if (changed.length + files.length > 0) this.#before = before;
    this.#last = latest;
    this.#loggedError = undefined;
    if (!this.#closed) this.#following.follow(latest.followed);
    reloaded(true);
    log.info("the configuration was reloaded", { changed, files });
    if (atRestart.length > 0) log.warn("changed keys need a restart", { changed: atRestart });
    return { successful: true, changed, files, atRestart };
  }

  #failed(error: unknown): ReloadResult {
    const { log, reloaded } = this.#options;
    reloaded(false);
    const problems = error instanceof ConfigError ? firstProblems(error.problems) : [];
    const before = this.#loggedError;
    this.#loggedError = String(error);
    if (this.#loggedError !== before) {
      for (const problem of problems.map(withoutSource)) {
        log.error("the configuration was not reloaded", { ...problem });
      }
      if (problems.length === 0) log.error("the configuration was not reloaded", { error });
    }
    if (!this.#closed) this.#retrying = setTimeout(() => void this.#again(), RETRY_MS).unref();
    return { successful: false, problems };
  }

  #clearTimers(): void {
    clearTimeout(this.#settling);
    clearTimeout(this.#retrying);
  }
}

/** Watches the files from which the configuration in force was read. */
class FollowedFiles {
  readonly #followed = new Map<string, FollowedFile>();
  readonly #changed: () => void;

  /** @param changed called when a file has changed, disappeared, or reappeared. */
  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /**
   * Watches exactly these files. Files that are already watched stay so. If a new file has changed since it was read,
   * this is reported, so that no change is lost.
   *
   * @param files the files with the fingerprints of the contents that were read; undefined for a file that could not be
   * read.
   */
  follow(files: ReadonlyMap<string, string | undefined>): void {
    for (const [file, followed] of this.#followed) {
      if (files.has(file)) continue;
      followed.close();
      this.#followed.delete(file);
    }
    const watching = { onChange: this.#changed, onUnreadable: this.#changed };
    for (const [file, print] of files) {
      if (!this.#followed.has(file)) this.#followed.set(file, followFile(file, print, watching));
    }
  }

  close(): void {
    for (const followed of this.#followed.values()) followed.close();
    this.#followed.clear();
  }
}
