import type { Log } from "../../core/log.ts";
import type { Clock } from "../../lib/clock.ts";
import { Outage } from "../../lib/outage.ts";
import { remoteFailure } from "../../lib/text/error-code.ts";
import type { ApiKeyRow } from "./api-key-file.ts";
import type { PostgresTable } from "./postgres-keys.ts";

/** How long a table is left alone after it was read, in milliseconds. Changes must be in force within a second. */
const EVERY_MS = 500;

interface FollowedKeysOptions {
  /** Its name in the log. */
  readonly store: string;
  readonly table: PostgresTable;
  /** Puts other keys in force. Rejects if that is not possible, as with a name that another store has. */
  readonly accept: (rows: readonly ApiKeyRow[]) => Promise<void>;
  readonly log: Log;
  readonly clock: Clock;
}

/**
 * Reads a table of keys again and again, and reports other keys. A table that cannot be read, or has a key that cannot be used, is
 * logged and reports nothing.
 */
export class FollowedKeys {
  readonly #options: FollowedKeysOptions;
  readonly #outage: Outage;
  /** Of the keys that were accepted last. */
  #print = "";
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: FollowedKeysOptions) {
    this.#options = options;
    this.#outage = new Outage(options.clock);
  }

  /** Since when the table cannot be read or used, in milliseconds since the epoch; undefined if it can. */
  get failingSince(): number | undefined {
    return this.#outage.since;
  }

  /** Reads the table every half second from now on. Further calls do nothing. */
  follow(): void {
    if (this.#timer !== undefined || this.#closed) return;
    this.#timer = setTimeout(() => void this.#again(), EVERY_MS).unref();
  }

  /** Reads the table once. Never rejects. */
  async read(): Promise<void> {
    const { table, accept, log, store } = this.#options;
    try {
      const found = await table.readUnless(this.#print);
      if (found !== undefined && !this.#closed) {
        await accept(found.rows);
        this.#print = found.print;
        log.info("API keys were read", { store, keys: found.rows.length });
      }
      const ended = this.#outage.succeeded();
      if (ended !== undefined) {
        log.info("API keys can be read again", { store, attempts: ended.attempts });
      }
    } catch (error) {
      const begun = this.#closed ? undefined : this.#outage.failed();
      if (begun === undefined) return;
      const { attempts } = begun;
      const reason = remoteFailure(error);
      log.error("API keys cannot be read, the old ones stay", { store, reason, attempts });
    }
  }

  async #again(): Promise<void> {
    await this.read();
    this.#timer = undefined;
    this.follow();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#options.table.close();
  }
}
