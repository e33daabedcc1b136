import type { Worker } from "node:worker_threads";
import { ConfigError } from "../../../core/config-problem.ts";
import { hashStore } from "../hash-store.ts";
import { StoreAccess, StoreUnavailable } from "../remote/store-access.ts";
import { LATE, remoteFailure } from "../../../lib/text/error-code.ts";
import type { StoreSettings } from "../store-kinds.ts";
import type { StoreKind } from "../user-store.ts";
import { COLUMNS_HINT, columnsFault, sqlUsers } from "./sql-users.ts";
import { NoReplyError, RpcClient } from "../../../core/thread-rpc.ts";
import { startWorker } from "../../../lib/async/worker-file.ts";
import type { SqliteApi } from "./sqlite-worker.ts";

const MEMORY = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 };

interface Running {
  readonly worker: Worker;
  readonly calls: RpcClient<SqliteApi>;
}

/** A thread that queries SQLite. It starts with the first query. */
class SqliteThread {
  #running: Running | undefined;
  /** Whether a thread that hangs in a query has not terminated yet. */
  #hanging = false;
  #closed = false;

  get connections(): number {
    return this.#running === undefined ? 0 : 1;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#running?.worker.terminate();
  }

  /** Calls a function of the thread. @throws StoreUnavailable, or what SQLite says. */
  async ask<Name extends keyof SqliteApi>(
    leftMs: number,
    name: Name,
    ...args: Parameters<SqliteApi[Name]>
  ) {
    if (this.#closed) throw new StoreUnavailable("the store is closed");
    // A disk that hangs must block one thread, not another one for each login.
    if (this.#hanging) throw new StoreUnavailable("an earlier query has not ended");
    this.#running ??= this.#start(leftMs);
    try {
      return await this.#running.calls.callWithTimeout(leftMs, name, ...args);
    } catch (error) {
      if (!(error instanceof NoReplyError)) throw error;
      this.#giveUp();
      throw new StoreUnavailable(LATE, error);
    }
  }

  #start(lateMs: number): Running {
    const worker = startWorker("sqlite-worker", import.meta.url, MEMORY);
    const calls = new RpcClient<SqliteApi>(worker, {
      timeoutMs: lateMs,
      maxPending: () => 1,
    });
    // The `exit` event follows.
    worker.on("error", () => undefined);
    worker.once("exit", () => {
      calls.close();
      if (this.#running?.worker === worker) this.#running = undefined;
    });
    worker.unref();
    return { worker, calls };
  }

  #giveUp(): void {
    const worker = this.#running?.worker;
    this.#running = undefined;
    if (worker === undefined) return;
    this.#hanging = true;
    void worker.terminate().finally(() => (this.#hanging = false));
  }
}

/** The kind of store that looks up password hashes in a SQLite file. */
export const sqlite: StoreKind<StoreSettings<"sqlite">> = {
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
      rows: (username, leftMs) => thread.ask(leftMs, "rows", path, query, username),
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

  hints: [
    COLUMNS_HINT,
    [
      /^the query cannot be run/,
      "is `path` the database, and does it have the table and columns that the query names?",
    ],
  ],
};

async function examined(
  { path, query }: StoreSettings<"sqlite">,
  thread: SqliteThread,
  timeoutMs: number,
): Promise<string | undefined> {
  try {
    return columnsFault(await thread.ask(timeoutMs, "columns", path, query));
  } catch (error) {
    return `the query cannot be run: ${remoteFailure(error)}`;
  }
}
