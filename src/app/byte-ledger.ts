import type { Configuration } from "../config/schema/configuration-schema.ts";
import type { Log } from "../core/log.ts";
import type { Observer } from "../core/observer.ts";
import type { Clock } from "../lib/clock.ts";
import {
  ConnectionLedger,
  type ConnectionLedgerOptions,
} from "../server/listener/connection-ledger.ts";

/** Minimum time between two warnings about closed connections, in milliseconds. The metric counts each connection. */
const WARN_EVERY_MS = 10_000;

export interface LedgerOptions {
  readonly configuration: Configuration;
  readonly shared?: ConnectionLedgerOptions["shared"];
  readonly observer: Pick<Observer, "requestRefused">;
  readonly clock: Clock;
  readonly log: Log;
}

/** Creates the ledger of one thread. It counts the connections that it closes, and logs a warning. */
export function openLedger(options: LedgerOptions): ConnectionLedger {
  const { configuration, shared, observer, clock, log } = options;
  let warnedAt = -Infinity;
  let unreported = 0;
  return new ConnectionLedger({
    limit: configuration.server.limits.bufferedBytes,
    shared,
    shed(connections, client, bytes) {
      for (let i = 0; i < connections; i += 1) observer.requestRefused("buffered_bytes");
      unreported += connections;
      const now = clock.monotonic();
      if (now - warnedAt < WARN_EVERY_MS) return;
      log.warn("connections were closed: too much data is buffered for clients", {
        ...{ connections: unreported, client, bytes },
      });
      warnedAt = now;
      unreported = 0;
    },
  });
}
