import type { Log } from "../core/log.ts";
import type { Clock } from "../lib/clock.ts";
import type { ClientUnknown } from "../server/intake.ts";

/** How often it is told of, in milliseconds: the health checks of a load balancer do it all day. */
const TELL_EVERY_MS = 3_600_000;

/**
 * Tells, once an hour at most, of a trusted proxy that does not say for whom it asks: all clients behind it count as one then.
 * What it wrote instead is not told, since a client may have written it.
 */
export function tellUnknownClients(log: Log, clock: Clock): ClientUnknown {
  let told = -Infinity;
  return (proxy, list) => {
    const now = clock.monotonic();
    if (now - told < TELL_EVERY_MS) return;
    told = now;
    log.warn("a trusted proxy does not name the client", { proxy, sent: list !== undefined });
  };
}
