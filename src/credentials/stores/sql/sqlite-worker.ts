/**
 * The thread that queries SQLite. Its calls block, and the event loop that serves requests must not wait for a disk.
 */
import { DatabaseSync } from "node:sqlite";
import { parentPort } from "node:worker_threads";
import { expose } from "../../../core/thread-rpc.ts";
import type { Row } from "./sql-users.ts";

/** How long a query waits while another process writes, before it fails. */
const BUSY_MS = 1_000;

const API = {
  /**
   * Runs the query with the name as parameter `$1`. Opens the file anew each time, so that a replaced file is noticed.
   *
   * @returns at most two rows.
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

  /** Returns the names of the columns of the query. */
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
    readOnly: true,
    timeout: BUSY_MS,
    defensive: true,
  });
  return Object.assign(database, { [Symbol.dispose]: () => database.close() });
}

export type SqliteApi = typeof API;

if (parentPort !== null) expose(parentPort, API);
