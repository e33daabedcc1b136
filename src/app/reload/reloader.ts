import { changedKeys, restartKeys } from "../../config/changes.ts";
import {
  changedValues,
  type ConfigurationInForce,
  inForce,
  type ValueChange,
} from "../../config/effective.ts";
import type { InForce, Snapshot } from "../../config/snapshot.ts";
import {
  ConfigError,
  describeProblem,
  firstProblems,
  withoutSource,
} from "../../core/config-problem.ts";
import type { Log } from "../../core/log.ts";
import type { Reloaded, ReloadResult } from "../../core/status.ts";
import { type FollowedFile, followFile } from "../../lib/files/watched-file.ts";
import type { Change } from "../../core/change.ts";

export interface ReloadOptions {
  /** The snapshot that the process was started with. */
  readonly start: Snapshot;
  /** Takes another snapshot and checks whether it can be used. Rejects with a `ConfigError`. */
  readonly read: (inForce: InForce) => Promise<Snapshot>;
  /** Puts a snapshot in force as a whole, or rejects and changes nothing. */
  readonly apply: (snapshot: Snapshot) => Promise<void>;
  readonly reloaded: Reloaded;
  readonly log: Log;
}

/** The last successful reload. */
export interface LastReload {
  /** Wall clock, in milliseconds since the epoch. */
  readonly at: number;
  readonly changes: readonly ValueChange[];
  readonly files: readonly string[];
}

/** Who asks for a reload without having an address. */
const CHANGED_FILE = "a changed file";

/** The problem of a reload that failed in another way; its error is in the log. */
const UNEXPECTED = "the reload failed: see the log";

/** The wait after a change, in milliseconds: certificate and key are often written one after the other. */
const SETTLE_MS = 200;
/**
 * The interval of retries after a failure, in milliseconds: a file that the configuration names may appear later, in a
 * directory that is not watched.
 */
const RETRY_MS = 1_500;

/** A snapshot without the contents of its files, which may be private keys. */
interface Remembered extends Omit<Snapshot, "files" | "missing" | "namedAt">, InForce {}

function remember({ written, configuration, followed, effective, files }: Snapshot): Remembered {
  return { written, configuration, followed, effective, seen: files.seen() };
}

/** Reloads the configuration whenever its file changes, or one of the files that it names. */
export class Reloader {
  readonly #options: Omit<ReloadOptions, "start">;
  readonly #follow: ReturnType<typeof filesFollower>;
  readonly #start: Remembered;
  #last: Remembered;
  #hash: number | undefined;
  #running: Promise<unknown> = Promise.resolve();
  /** The reload that starts when the running one ends. */
  #next: Promise<ReloadResult> | undefined;
  #settling: NodeJS.Timeout | undefined;
  #retrying: NodeJS.Timeout | undefined;
  #closed = false;
  /** The error logged last, so that retries do not repeat it. */
  #loggedError: string | undefined;
  /** Who asked for the next reload. */
  readonly #askedBy = new Set<string>();
  /** The last reload that changed something, and the snapshot that it replaced. */
  #latest: (Omit<LastReload, "changes"> & { readonly before: Remembered }) | undefined;

  constructor({ start, ...options }: ReloadOptions) {
    this.#options = options;
    this.#start = remember(start);
    this.#last = this.#start;
    this.#follow = filesFollower(() => {
      clearTimeout(this.#settling);
      this.#settling = setTimeout(() => void this.now(CHANGED_FILE), SETTLE_MS).unref();
    });
    this.#follow(start.followed);
  }

  /**
   * Reads and applies the configuration. Calls during a reload share the reload after it. Never rejects.
   *
   * @param by who asks for it, for the log.
   */
  now(by: string): Promise<ReloadResult> {
    this.#loggedError = undefined;
    return this.#again(by);
  }

  /** Returns the configuration in force, without secrets, and the keys that wait for a restart. */
  inForce(): ConfigurationInForce & { readonly needRestart: readonly string[] } {
    const [start, last] = [this.#start, this.#last];
    const needRestart = restartKeys(changedKeys(start.written, last.written));
    return { ...inForce(start.effective(), last.effective(), needRestart), needRestart };
  }

  /** The first 48 bits of its hash, which a double holds exactly. Kept, since a large configuration takes 0.1 s. */
  readonly hash = (): number =>
    (this.#hash ??= Buffer.from(this.inForce().hash, "base64url").readUIntBE(0, 6));

  /** Returns the last reload that changed something; undefined if there was none. */
  lastReload(): LastReload | undefined {
    if (this.#latest === undefined) return undefined;
    const values = (of: Remembered) => inForce(of.effective(), of.effective(), []).values;
    const { at, before, files } = this.#latest;
    return { at, files, changes: changedValues(values(before), values(this.#last)) };
  }

  /** Stops watching files. */
  close(): void {
    this.#closed = true;
    this.#clearTimers();
    this.#follow(new Map());
  }

  #again(by: string): Promise<ReloadResult> {
    this.#askedBy.add(by);
    this.#next ??= this.#running.then(() => this.#reload());
    this.#running = this.#next;
    return this.#next;
  }

  async #reload(): Promise<ReloadResult> {
    this.#clearTimers();
    this.#next = undefined;
    const by = [...this.#askedBy].join(", ");
    this.#askedBy.clear();
    try {
      const snapshot = await this.#options.read(this.#last);
      await this.#options.apply(snapshot);
      return this.#succeeded(remember(snapshot), by);
    } catch (error) {
      return this.#failed(error, by);
    }
  }

  #succeeded(latest: Remembered, by: string): ReloadResult {
    const { log, reloaded } = this.#options;
    const before = this.#last;
    const changed = changedKeys(before.written, latest.written);
    const files = [...latest.followed.keys()].filter(
      (file) => before.followed.get(file) !== latest.followed.get(file),
    );
    const atRestart = restartKeys(changedKeys(this.#start.written, latest.written));
    this.#last = latest;
    this.#hash = undefined;
    this.#loggedError = undefined;
    if (!this.#closed) this.#follow(latest.followed);
    reloaded([]);
    // After the report, so that this reload counts as later than the failure that it ends.
    if (changed.length + files.length > 0) this.#latest = { at: Date.now(), before, files };
    log.info("the configuration was reloaded", { by, changed, files });
    const waited = restartKeys(changedKeys(this.#start.written, before.written));
    if (atRestart.length > 0 && String(atRestart) !== String(waited))
      log.warn("changed keys need a restart", { changed: atRestart });
    return { successful: true, changed, files, atRestart };
  }

  #failed(error: unknown, by: string): ReloadResult {
    const { log, reloaded } = this.#options;
    const problems = error instanceof ConfigError ? firstProblems(error.problems) : [];
    reloaded(problems.length > 0 ? problems.map(describeProblem) : [UNEXPECTED]);
    const before = this.#loggedError;
    this.#loggedError = String(error);
    if (this.#loggedError !== before) {
      for (const problem of problems.map(withoutSource)) {
        log.error("the configuration was not reloaded", { by, ...problem });
      }
      if (problems.length === 0) log.error("the configuration was not reloaded", { by, error });
    }
    if (!this.#closed)
      this.#retrying = setTimeout(() => void this.#again(CHANGED_FILE), RETRY_MS).unref();
    return { successful: false, problems };
  }

  #clearTimers(): void {
    clearTimeout(this.#settling);
    clearTimeout(this.#retrying);
  }
}

/**
 * Watches the files from which the configuration in force was read.
 *
 * @param changed called when a file has changed, disappeared, or reappeared.
 * @returns a function that watches exactly these files, given with the fingerprints of the contents that were read;
 * undefined for a file that could not be read. Files that are already watched stay so. If a new file has changed since it
 * was read, this is reported, so that no change is lost.
 */
function filesFollower(
  changed: () => void,
): (files: ReadonlyMap<string, string | undefined>) => void {
  const followed = new Map<string, FollowedFile>();
  return (files) => {
    for (const [file, before] of followed) {
      if (files.has(file)) continue;
      before.close();
      followed.delete(file);
    }
    const watching = { onChange: changed, onUnreadable: changed };
    for (const [file, print] of files) {
      if (!followed.has(file)) followed.set(file, followFile(file, print, watching));
    }
  };
}

/**
 * Prepares several changes in order, and combines them into one: either all are put in force, or none. If one
 * preparation fails, the changes before it are rolled back.
 *
 * @throws the error of the preparation that failed.
 */
export async function prepareAll(
  preparations: readonly (() => Change | Promise<Change>)[],
): Promise<Change> {
  const changes: Change[] = [];
  const rollback = (): void => {
    for (const change of changes) change.rollback();
  };
  try {
    for (const prepare of preparations) changes.push(await prepare());
  } catch (error) {
    rollback();
    throw error;
  }
  return {
    async commit() {
      await Promise.all(changes.map((change) => change.commit()));
    },
    rollback,
  };
}
