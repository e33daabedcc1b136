/** The thread that queries SQLite, whose calls block: the event loop that serves requests must not wait for a disk. */
import { DatabaseSync } from "node:sqlite";
import { parentPort } from "node:worker_threads";
import { ERROR_CODEC } from "../../../core/error-codec.ts";
import { expose } from "../../../lib/async/thread-rpc.ts";
import type { Row } from "./sql-users.ts";

/** How long another process may write until the query has failed. */
const BUSY_MS = 1_000;

const API = {
  /**
   * Opens the file for this query alone: so it is always the one that has the name now. The parameter `$1` is the name.
   *
   * @returns two rows at most.
   */
  rows(path: string, query: string, username: string): readonly Row[] {
    using database = opened(path);
    const rows: Row[] = [];
    for (const row of database.prepare(query).iterate({ $1: username })) {
      rows.push({ ...row });
      if (rows.length === 2) break;
    }
    return rows;
  },

  /** The names of the columns that the query gives. */
  columns(path: string, query: string): readonly string[] {
    using database = opened(path);
    return database
      .prepare(query)
      .columns()
      .map(({ name }) => name);
  },
};

function opened(path: string): DatabaseSync & Disposable {
  const database = new DatabaseSync(path, {
    ...{ readOnly: true, timeout: BUSY_MS, defensive: true },
  });
  return Object.assign(database, { [Symbol.dispose]: () => database.close() });
}

export type SqliteApi = typeof API;

if (parentPort !== null) expose(parentPort, API, ERROR_CODEC);
