import type { Log } from "../core/log.ts";
import type { Observer, Postponed } from "../core/observer.ts";
import type { Clock } from "../lib/clock.ts";
import { FairReading } from "../server/listener/reading/fair-reading.ts";
import { SharedUsage, type UsageRow } from "../server/listener/reading/shared-usage.ts";

/** Minimum time between two warnings about postponed clients, in milliseconds. The metric counts each connection. */
const WARN_EVERY_MS = 60_000;

export interface FairReadingOptions {
  readonly observer: Pick<Observer, "connectionsPostponed">;
  readonly clock: Clock;
  readonly log: Log;
  /** Memory in which several threads share how much time clients use. */
  readonly usage?: UsageRow | undefined;
}

/** Creates the fair reading of one thread. It counts postponed connections, and logs a warning. */
export function createObservedReading(options: FairReadingOptions): FairReading {
  const { observer, clock, log, usage } = options;
  let quietUntil = -Infinity;
  const postponed = (what: Postponed, client: string, connections: number): void => {
    observer.connectionsPostponed(what, connections);
    const now = clock.monotonic();
    if (now < quietUntil) return;
    quietUntil = now + WARN_EVERY_MS;
    log.warn("a client is held back, since it takes too much of the event loop's time", { client });
  };
  const shared = usage && new SharedUsage(usage, () => clock.now());
  return new FairReading(clock, postponed, shared);
}
