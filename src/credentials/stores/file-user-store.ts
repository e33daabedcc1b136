import { ConfigError, describeProblem } from "../../core/config-problem.ts";
import { type FileContent, readFailure } from "../../lib/files/regular-file.ts";
import { followFile } from "../../lib/files/watched-file.ts";
import { hashStore, type UserRecord } from "./hash-store.ts";
import {
  type FileReader,
  LARGEST_USERS_FILE,
  type StoreContext,
  type StoreKind,
} from "./user-store.ts";

/** Parses the content of a file. Rejects with a `ConfigError`. */
export type UsersReader = (content: FileContent) => Promise<ReadonlyMap<string, UserRecord>>;

/** The kind of store that reads users and their hashes from one file, and follows its changes. */
export function fileUserStore(read: UsersReader): StoreKind<{ readonly path: string }> {
  return {
    async open({ path }, context) {
      const users = await followUsers(context.contentOf(path), read, context);
      return {
        ...hashStore(users, context.verifier),
        users: users.users,
        outdated: users.outdated,
        reload: users.reload,
        close: users.close,
      };
    },
    async inspect({ path }, contentOf) {
      const users = await read(contentOf(path));
      return users.size;
    },
  };
}

/**
 * Reads the users of a file and follows its changes. Later problems are logged once, with their position, and the old
 * users stay in use.
 *
 * @throws ConfigError if the content is invalid.
 */
export async function followUsers(
  first: FileContent,
  readUsers: UsersReader,
  { log, reloaded }: Pick<StoreContext, "log" | "reloaded">,
) {
  const { path } = first;
  let closed = false;
  let users = withPasswords(await readUsers(first));
  const readings = latestOf(async (content) => {
    try {
      const next = withPasswords(await readUsers(content));
      if (closed) return;
      users = next;
      log.info("the users file was reloaded", { file: path, users: next.byName.size });
      reloaded?.([]);
    } catch (error) {
      unusable(error);
    }
  });
  const followed = followFile(path, first.fingerprint, {
    onChange: readings.add,
    maxBytes: LARGEST_USERS_FILE,
    onUnreadable(error) {
      const message = `the users file cannot be read: ${readFailure(error)}`;
      unusable(new ConfigError([{ file: path, message }]));
    },
  });

  function unusable(error: unknown): void {
    if (closed) return;
    const problems = describe(error, path);
    log.error("the users file cannot be used: the old users stay in use", { file: path, problems });
    reloaded?.(problems);
  }

  return {
    find: (username: string): UserRecord | undefined => users.byName.get(username),
    users: (): Iterable<UserRecord> => users.byName.values(),
    passwords: () => users.passwords,
    /** The number of users whose hash should be replaced. */
    outdated: (): number => users.outdated,
    /**
     * Takes the content of a new snapshot without waiting for the watch. A broken file keeps the old users. Resolves when
     * done; never rejects.
     */
    async reload(contentOf: FileReader): Promise<void> {
      try {
        followed.accept(contentOf(path));
      } catch (error) {
        unusable(error);
      }
      await readings.all();
    },
    async close(): Promise<void> {
      closed = true;
      followed.close();
    },
  };
}

/**
 * Reads contents one after the other, since reading a large one takes time and the file may change again meanwhile. Of
 * several contents that arrive during a reading, reads only the last.
 *
 * @param read must not reject.
 */
function latestOf(read: (content: FileContent) => Promise<void>) {
  let next: FileContent | undefined;
  let readings = Promise.resolve();
  return {
    add(content: FileContent): void {
      next = content;
      readings = readings.then(async () => {
        const latest = next;
        next = undefined;
        if (latest !== undefined) await read(latest);
      });
    },
    all: (): Promise<void> => readings,
  };
}

/** Collects the passwords and the outdated ones once per reading, not once per login. */
function withPasswords(byName: ReadonlyMap<string, UserRecord>) {
  const users = [...byName.values()];
  const passwords = users.map(({ password }) => password);
  const outdated = users.filter((user) => user.outdated !== undefined).length;
  return { byName, passwords, outdated };
}

/** The message of an unexpected error may quote the file, so only its name is reported. */
function describe(error: unknown, file: string): string[] {
  if (error instanceof ConfigError) return error.problems.map(describeProblem);
  return [`${file}: ${error instanceof Error ? error.name : "unknown error"}`];
}
