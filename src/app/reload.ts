import { changedKeys, startKeys, withoutRestart } from "../config/changes.ts";
import { filesReadAlong } from "../config/named-files.ts";
import type { Configuration } from "../config/schema.ts";
import { ConfigError, firstProblems } from "../core/config-problem.ts";
import type { Log } from "../core/log.ts";
import type { ReloadResult } from "../core/reload-result.ts";
import { fingerprintOfFile } from "../lib/fingerprint.ts";
import { FollowedFiles } from "./followed-files.ts";

/** A configuration, and what it was read from. */
export interface ReadConfiguration {
  readonly configuration: Configuration;
  /** All files that count only when the configuration is read, with the fingerprint of what each held before it was read. */
  readonly files: ReadonlyMap<string, string>;
}

export interface ReloadOptions {
  /** What the process was started with. */
  readonly start: ReadConfiguration;
  /** Reads it again, with everything that it names. Rejects with a `ConfigError`. */
  readonly read: () => Promise<ReadConfiguration>;
  /**
   * Puts one in force as a whole, or rejects and changes nothing.
   * @param written the same as it was read, with what needs a restart.
   */
  readonly apply: (configuration: Configuration, written: Configuration) => Promise<void>;
  /** Told of every attempt. */
  readonly reloaded: (successful: boolean) => void;
  readonly log: Log;
}

export interface Reloading {
  /**
   * Reads and applies the configuration. While one runs, all who ask share the one that follows it. Never rejects.
   */
  now(): Promise<ReloadResult>;
  /** Ends the watching of files. */
  close(): void;
}

/** Certificate and key are often written one after the other: so long is waited for the second, in milliseconds. */
const SETTLE_MS = 200;
/** What was refused is read again so often, in milliseconds: what it names may come later, where nobody watches. */
const RETRY_MS = 1_500;

function printsOf(files: readonly string[]): (readonly [string, string])[] {
  return files.map((file) => [file, fingerprintOfFile(file)] as const);
}

/** Reads the configuration again whenever its file, or one that is read with it, changes. */
export function startReloading(options: ReloadOptions): Reloading {
  const { start, read, apply, reloaded, log } = options;
  let written = start;
  let inForce = start.configuration;
  let running: Promise<unknown> = Promise.resolve();
  let following: Promise<ReloadResult> | undefined;
  let settling: NodeJS.Timeout | undefined;
  let retrying: NodeJS.Timeout | undefined;
  let closed = false;
  /** What was told last, so that looking again does not repeat it. */
  let told: string | undefined;
  const followed = new FollowedFiles(() => {
    clearTimeout(settling);
    settling = setTimeout(() => void now(), SETTLE_MS).unref();
  });

  async function reload(): Promise<ReloadResult> {
    forgetTimers();
    following = undefined;
    try {
      const { configuration, files } = await read();
      const next = withoutRestart(configuration, inForce);
      const all = new Map([...printsOf(filesReadAlong(next)), ...files]);
      await apply(next, configuration);
      inForce = next;
      return succeeded({ configuration, files: all });
    } catch (error) {
      return failed(error);
    }
  }

  function succeeded(next: ReadConfiguration): ReloadResult {
    const changed = changedKeys(written.configuration, next.configuration);
    const files = [...next.files.keys()].filter(
      (file) => written.files.get(file) !== next.files.get(file),
    );
    const atRestart = startKeys(changedKeys(start.configuration, next.configuration));
    written = next;
    told = undefined;
    if (!closed) followed.follow(next.files);
    reloaded(true);
    log.info("the configuration was reloaded", { changed, files });
    if (atRestart.length > 0) log.warn("changed keys need a restart", { changed: atRestart });
    return { successful: true, changed, files, atRestart };
  }

  function failed(error: unknown): ReloadResult {
    reloaded(false);
    const problems = error instanceof ConfigError ? firstProblems(error.problems) : [];
    const before = told;
    told = String(error);
    if (told !== before) {
      for (const { source: _mayHoldSecrets, ...problem } of problems) {
        log.error("the configuration was not reloaded", { ...problem });
      }
      if (problems.length === 0) log.error("the configuration was not reloaded", { error });
    }
    if (!closed) retrying = setTimeout(() => void again(), RETRY_MS).unref();
    return { successful: false, problems };
  }

  function again(): Promise<ReloadResult> {
    following ??= running.then(reload);
    running = following;
    return following;
  }

  function now(): Promise<ReloadResult> {
    told = undefined;
    return again();
  }

  function forgetTimers(): void {
    clearTimeout(settling);
    clearTimeout(retrying);
  }

  followed.follow(start.files);
  return {
    now,
    close() {
      closed = true;
      forgetTimers();
      followed.close();
    },
  };
}
