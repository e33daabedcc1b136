import { changedKeys, startKeys } from "../config/changes.ts";
import { filesReadAlong } from "../config/named-files.ts";
import type { Configuration } from "../config/schema.ts";
import { ConfigError, type ConfigProblem } from "../core/config-problem.ts";
import type { Log } from "../core/log.ts";
import { type WatchedFile, watchFile } from "../lib/watched-file.ts";

export interface ReloadOptions {
  /** In force now. */
  readonly configuration: Configuration;
  /** The file that it was read from. */
  readonly file: string;
  /** Reads it again, with everything that it names. Rejects with a `ConfigError`. */
  readonly read: () => Promise<Configuration>;
  /** Puts it in force as a whole, or rejects and changes nothing. */
  readonly apply: (configuration: Configuration) => Promise<void>;
  /** Told of every attempt. */
  readonly reloaded: (successful: boolean) => void;
  readonly log: Log;
}

type ReloadResult =
  | {
      readonly successful: true;
      /** Keys, never values: these may be secrets. */
      readonly changed: readonly string[];
      /** Of these the ones that need a restart. */
      readonly atRestart: readonly string[];
    }
  | { readonly successful: false; readonly problems: readonly ConfigProblem[] };

export interface Reloading {
  /** Reads and applies the configuration now; two at the same time follow each other. Never rejects. */
  now(): Promise<ReloadResult>;
  /** Ends the watching of files. */
  close(): void;
}

/** Certificate and key are often written one after the other: so long is waited for the second, in milliseconds. */
const SETTLE_MS = 200;

/** Reads the configuration again whenever its file, or one that is read with it, changes. */
export function startReloading(options: ReloadOptions): Reloading {
  const { file, read, apply, reloaded, log } = options;
  let { configuration } = options;
  let watched: WatchedFile[] = [];
  let running: Promise<unknown> = Promise.resolve();
  let settling: NodeJS.Timeout | undefined;

  async function reload(): Promise<ReloadResult> {
    try {
      const next = await read();
      await apply(next);
      const changed = changedKeys(configuration, next);
      const atRestart = startKeys(changed);
      configuration = next;
      watch();
      reloaded(true);
      log.info("the configuration was reloaded", { changed });
      if (atRestart.length > 0) log.warn("changed keys need a restart", { changed: atRestart });
      return { successful: true, changed, atRestart };
    } catch (error) {
      reloaded(false);
      const problems = error instanceof ConfigError ? error.problems : [];
      for (const { source: _mayHoldSecrets, ...problem } of problems) {
        log.error("the configuration was not reloaded", { ...problem });
      }
      if (problems.length === 0) log.error("the configuration was not reloaded", { error });
      return { successful: false, problems };
    }
  }

  function now(): Promise<ReloadResult> {
    const result = running.then(reload);
    running = result;
    return result;
  }

  function soon(): void {
    clearTimeout(settling);
    settling = setTimeout(() => void now(), SETTLE_MS).unref();
  }

  function watch(): void {
    const before = watched;
    // A file that is missing now is looked for by the reload that its absence caused.
    watched = [file, ...filesReadAlong(configuration)].flatMap((each) => {
      try {
        return [watchFile(each, { changed: soon, unreadable: soon })];
      } catch {
        return [];
      }
    });
    for (const each of before) each.close();
  }

  watch();
  return {
    now,
    close() {
      clearTimeout(settling);
      for (const each of watched) each.close();
    },
  };
}
