import type { Log } from "../core/log.ts";
import type { Observer } from "../core/observer.ts";
import type { Clock } from "../lib/clock.ts";
import { FairReading } from "../server/listener/reading/fair-reading.ts";

/** Minimum time between two warnings about clients that are held back, in milliseconds; the metric counts each connection. */
const WARN_EVERY_MS = 60_000;

export interface FairReadingOptions {
  readonly observer: Pick<Observer, "connectionsPostponed">;
  readonly clock: Clock;
  readonly log: Log;
}

/** Creates the fair reading of one thread, with its metric and its line in the log. */
export function createObservedReading({ observer, clock, log }: FairReadingOptions): FairReading {
  let quietUntil = -Infinity;
  return new FairReading(clock, (what, client, connections) => {
    observer.connectionsPostponed(what, connections);
    const now = clock.monotonic();
    if (now < quietUntil) return;
    quietUntil = now + WARN_EVERY_MS;
    log.warn("a client is held back, since it takes too much of the event loop's time", { client });
  });
}
