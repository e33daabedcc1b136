import { ConfigError } from "../../../core/config-problem.ts";
import { hashStore } from "../hash-store.ts";
import { StoreAccess } from "../remote/store-access.ts";
import { remoteFailure } from "../../../lib/text/remote-error.ts";
import type { StoreKind } from "../user-store.ts";
import { COLUMNS_HINT, columnsFault, sqlUsers } from "./sql-users.ts";
import { SqliteThread } from "./sqlite-thread.ts";

export interface SqliteSettings {
  readonly path: string;
  readonly query: string;
  /** Milliseconds. */
  readonly timeout: number;
}

/** The kind of store that looks up password hashes in a SQLite file. */
export const sqlite: StoreKind<SqliteSettings> = {
  async open(settings, context) {
    const { path, query, timeout } = settings;
    const { log, verifier } = context;
    const thread = new SqliteThread();
    // One query at a time: there is only one thread.
    const access = new StoreAccess("sqlite", { connections: 1, timeout }, context);
    const users = sqlUsers({
      store: "sqlite",
      access,
      log,
      rows: (username, leftMs) => thread.rows(path, query, username, leftMs),
    });
    return {
      ...hashStore(users, verifier),
      failing: access.failing,
      // Each query opens the file anew.
      reload: async () => undefined,
      connections: () => thread.connections,
      examine: (timeoutMs) => examined(settings, thread, timeoutMs),
      close: () => thread.close(),
    };
  },

  async inspect(settings) {
    const thread = new SqliteThread();
    try {
      const fault = await examined(settings, thread, settings.timeout);
      if (fault !== undefined) throw new ConfigError([{ file: settings.path, message: fault }]);
    } finally {
      await thread.close();
    }
    return undefined;
  },

  clearText: () => undefined,

  hints: [
    COLUMNS_HINT,
    {
      reason: /^the query cannot be run/,
      hint: "is `path` the database, and does it have the table and columns that the query names?",
    },
  ],
};

async function examined(
  { path, query }: SqliteSettings,
  thread: SqliteThread,
  timeoutMs: number,
): Promise<string | undefined> {
  try {
    return columnsFault(await thread.columns(path, query, timeoutMs));
  } catch (error) {
    return `the query cannot be run: ${remoteFailure(error)}`;
  }
}
