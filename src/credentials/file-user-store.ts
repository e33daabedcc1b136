import { readFileSync } from "node:fs";
import { ConfigError, describeProblem } from "../core/config-problem.ts";
import type { Log } from "../core/log.ts";
import type { UserRecord, UserStore } from "../core/user-store.ts";
import { watchFile } from "../lib/watched-file.ts";
import type { FileWatching, WatchedFile } from "../lib/watched-file.ts";
import { readUsersFile } from "./users-file.ts";

export interface FileUserStoreOptions {
  readonly log: Log;
  /** Called after each later reading, with whether the new users are in force. */
  readonly reloaded?: (successful: boolean) => void;
}

export interface FileUserStore extends UserStore {
  /** Reads the file now, without waiting for the watch; a broken one keeps the old users, as always. */
  reload(): void;
  close(): void;
}

/**
 * Opens a users file and follows its changes. What cannot be used later is told in the log, once and with its place,
 * and the old users stay.
 *
 * @throws ConfigError when the file cannot be read or is not valid at the start.
 */
export function openFileUserStore(
  path: string,
  { log, reloaded }: FileUserStoreOptions,
): FileUserStore {
  const watched = watchUsers(path, { changed, unreadable });
  let seen = watched.content;
  let users: Users;
  try {
    users = readUsers(seen, path);
  } catch (error) {
    watched.close();
    throw error;
  }

  function changed(content: Buffer): void {
    if (content.equals(seen)) return;
    seen = content;
    try {
      users = readUsers(content, path);
      log.info("the users file was read again", { file: path, users: users.byName.size });
      reloaded?.(true);
    } catch (error) {
      unusable(error);
    }
  }

  function unreadable(error: unknown): void {
    unusable(notReadable(path, error));
  }

  function unusable(error: unknown): void {
    const problems = describe(error, path);
    log.error("the users file cannot be used, the old users stay", { file: path, problems });
    reloaded?.(false);
  }

  return {
    find: (username) => users.byName.get(username),
    passwords: () => users.passwords,
    reload() {
      try {
        changed(readFileSync(path));
      } catch (error) {
        unreadable(error);
      }
    },
    close: () => watched.close(),
  };
}

interface Users {
  readonly byName: ReadonlyMap<string, UserRecord>;
  readonly passwords: readonly string[];
}

function readUsers(content: Buffer, path: string): Users {
  const byName = readUsersFile(content, path);
  return { byName, passwords: Array.from(byName.values(), ({ password }) => password) };
}

function watchUsers(path: string, watching: FileWatching): WatchedFile {
  try {
    return watchFile(path, watching);
  } catch (error) {
    throw notReadable(path, error);
  }
}

function notReadable(file: string, error: unknown): ConfigError {
  const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
  return new ConfigError([{ file, message: `the users file cannot be read: ${code}` }]);
}

/** An unforeseen error may quote what it could not read, so only its kind is told. */
function describe(error: unknown, file: string): string[] {
  if (error instanceof ConfigError) return error.problems.map(describeProblem);
  return [`${file}: ${error instanceof Error ? error.name : "unknown error"}`];
}
