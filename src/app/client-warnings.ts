import type { Configuration } from "../config/configuration.ts";
import type { Observer, Postponed } from "../core/observer.ts";
import type { Clock } from "../lib/clock.ts";
import type { GateOptions } from "./gate/gate-options.ts";
import {
  ConnectionLedger,
  type ConnectionLedgerOptions,
} from "../server/listener/connection-ledger.ts";
import { FairReading } from "../server/listener/reading/fair-reading.ts";
import { SharedUsage, type UsageRow } from "../server/listener/reading/reading-client.ts";
import type { ClientUnknown } from "../server/request/intake.ts";

/** What one thread logs about clients and proxies in front: seldom, because a client may cause it at any rate. */

/** Minimum time between two warnings, in milliseconds. The metrics count each case. */
const BUFFERED_EVERY_MS = 10_000;
const POSTPONED_EVERY_MS = 60_000;
/** The health checks of a load balancer may cause these all day. */
const UNKNOWN_EVERY_MS = 3_600_000;

/** Returns a function that reports whether the last time it returned true is long enough ago. */
function atMostEvery(milliseconds: number, clock: Clock): () => boolean {
  let quietUntil = -Infinity;
  return () => {
    const now = clock.monotonic();
    if (now < quietUntil) return false;
    quietUntil = now + milliseconds;
    return true;
  };
}

type Outside = Pick<GateOptions, "clock" | "log">;

interface LedgerOptions extends Outside {
  readonly configuration: Configuration;
  readonly shared?: ConnectionLedgerOptions["shared"];
  readonly observer: Pick<Observer, "requestRefused">;
}

/** Creates the ledger of one thread. It counts the connections that it closes, and logs a warning. */
export function openLedger(options: LedgerOptions): ConnectionLedger {
  const { configuration, shared, observer, clock, log } = options;
  const isDue = atMostEvery(BUFFERED_EVERY_MS, clock);
  let unreported = 0;
  return new ConnectionLedger({
    limit: configuration.server.limits.bufferedBytes,
    shared,
    shed(connections, client, bytes) {
      for (let i = 0; i < connections; i += 1) observer.requestRefused("buffered_bytes");
      unreported += connections;
      if (!isDue()) return;
      log.warn("connections were closed: too much data is buffered for clients", {
        connections: unreported,
        client,
        bytes,
      });
      unreported = 0;
    },
  });
}

export interface FairReadingOptions extends Outside {
  readonly observer: Pick<Observer, "connectionsPostponed">;
  /** Memory in which several threads share how much time clients use. */
  readonly usage?: UsageRow | undefined;
}

/** Creates the fair reading of one thread. It counts postponed connections, and logs a warning. */
export function createObservedReading(options: FairReadingOptions): FairReading {
  const { observer, clock, log, usage } = options;
  const isDue = atMostEvery(POSTPONED_EVERY_MS, clock);
  const postponed = (what: Postponed, client: string, connections: number): void => {
    observer.connectionsPostponed(what, connections);
    if (!isDue()) return;
    log.warn("a client is held back, since it takes too much of the event loop's time", { client });
  };
  const shared = usage && new SharedUsage(usage, () => clock.now());
  return new FairReading(clock, postponed, shared);
}

/**
 * Warns about a trusted proxy that does not name the client: all clients behind it then count as one. The value that it
 * sent instead is not logged, since a client may have written it.
 */
export function warnUnknownClients({ log, clock }: Outside): ClientUnknown {
  const isDue = atMostEvery(UNKNOWN_EVERY_MS, clock);
  return (proxy, list) => {
    if (!isDue()) return;
    log.warn("a trusted proxy does not name the client", { proxy, sent: list !== undefined });
  };
}
