import { ConfigError, describeProblem } from "../core/config-problem.ts";
import type { Log } from "../core/log.ts";
import type { UserRecord, UserStore } from "../core/user-store.ts";
import { fingerprint } from "../lib/fingerprint.ts";
import { watchFile } from "../lib/watched-file.ts";
import type { FileWatching, WatchedFile } from "../lib/watched-file.ts";
import { LARGEST_USERS_FILE, usersBytes, usersIn, usersUnread } from "./users-reading.ts";

export interface FileUserStoreOptions {
  readonly log: Log;
  /** Called after each later reading, with whether the new users are in force. */
  readonly reloaded?: (successful: boolean) => void;
}

export interface FileUserStore extends UserStore {
  /**
   * Reads the file now, without waiting for the watch; a broken one keeps the old users, as always. Resolves when that is
   * done. Never rejects.
   */
  reload(): Promise<void>;
  close(): void;
}

/**
 * Opens a users file and follows its changes. What cannot be used later is told in the log, once and with its place,
 * and the old users stay.
 *
 * @throws ConfigError when the file cannot be read or is not valid at the start.
 */
export async function openFileUserStore(
  path: string,
  { log, reloaded }: FileUserStoreOptions,
): Promise<FileUserStore> {
  let closed = false;
  const watched = watchUsers(path, {
    changed: readSoon,
    unreadable: readSoon,
    largest: LARGEST_USERS_FILE,
  });
  /** Fingerprint; undefined while the file cannot be read. */
  let seen: string | undefined = fingerprint(watched.content);
  const first = readUsers(watched.content, path);
  /** One after the other: to read a large file takes its time, and it may change meanwhile. */
  let readings: Promise<unknown> = first.catch(close);
  let users = await first;

  function readSoon(): void {
    readings = readings.then(read);
  }

  async function read(): Promise<void> {
    const before = seen;
    seen = undefined;
    try {
      const content = await usersBytes(path);
      seen = fingerprint(content);
      if (closed || seen === before) return;
      const next = await readUsers(content, path);
      if (closed) return;
      users = next;
      log.info("the users file was read again", { file: path, users: users.byName.size });
      reloaded?.(true);
    } catch (error) {
      unusable(error);
    }
  }

  function unusable(error: unknown): void {
    if (closed) return;
    const problems = describe(error, path);
    log.error("the users file cannot be used, the old users stay", { file: path, problems });
    reloaded?.(false);
  }

  function close(): void {
    closed = true;
    watched.close();
  }

  return {
    find: (username) => users.byName.get(username),
    passwords: () => users.passwords,
    async reload() {
      readSoon();
      await readings;
    },
    close,
  };
}

interface Users {
  readonly byName: ReadonlyMap<string, UserRecord>;
  readonly passwords: readonly string[];
}

async function readUsers(content: Buffer, path: string): Promise<Users> {
  const byName = await usersIn(content, path);
  return { byName, passwords: Array.from(byName.values(), ({ password }) => password) };
}

function watchUsers(path: string, watching: FileWatching): WatchedFile {
  try {
    return watchFile(path, watching);
  } catch (error) {
    throw usersUnread(path, error);
  }
}

/** An unforeseen error may quote what it could not read, so only its kind is told. */
function describe(error: unknown, file: string): string[] {
  if (error instanceof ConfigError) return error.problems.map(describeProblem);
  return [`${file}: ${error instanceof Error ? error.name : "unknown error"}`];
}
