import type { Log } from "../../core/log.ts";
import type { Clock } from "../../lib/clock.ts";
import { pacedTask } from "../../lib/async/paced-task.ts";
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
export function followKeys({ store, table, accept, log, clock }: FollowedKeysOptions) {
  const outage = new Outage(clock);
  /** Of the keys that were accepted last. */
  let print = "";
  let closed = false;

  /** Reads the table every half second from now on. Further calls do nothing. */
  const follow = pacedTask(EVERY_MS, async () => {
    if (!closed) await read();
    return !closed;
  });

  /** Reads the table once. Never rejects. */
  async function read(): Promise<void> {
    try {
      const found = await table.readUnless(print);
      if (found !== undefined && !closed) {
        await accept(found.rows);
        ({ print } = found);
        log.info("API keys were read", { store, keys: found.rows.length });
      }
      const ended = outage.succeeded();
      if (ended !== undefined) {
        log.info("API keys can be read again", { store, attempts: ended.attempts });
      }
    } catch (error) {
      const begun = closed ? undefined : outage.failed();
      if (begun === undefined) return;
      const { attempts } = begun;
      const reason = remoteFailure(error);
      log.error("API keys cannot be read, the old ones stay", { store, reason, attempts });
    }
  }

  return {
    follow,
    read,
    /** Since when the table cannot be read or used, in milliseconds since the epoch; undefined if it can. */
    get failingSince(): number | undefined {
      return outage.since;
    },
    async close(): Promise<void> {
      closed = true;
      await table.close();
    },
  };
}
