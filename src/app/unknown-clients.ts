import type { Log } from "../core/log.ts";
import type { Clock } from "../lib/clock.ts";
import type { ClientUnknown } from "../server/request/intake.ts";

/** Minimum time between two warnings, in milliseconds: the health checks of a load balancer may cause them all day. */
const WARN_EVERY_MS = 3_600_000;

/**
 * Warns, at most once an hour, about a trusted proxy that does not name the client: all clients behind it then count as
 * one. The value that it sent instead is not logged, since a client may have written it.
 */
export function warnUnknownClients(log: Log, clock: Clock): ClientUnknown {
  let warnedAt = -Infinity;
  return (proxy, list) => {
    const now = clock.monotonic();
    if (now - warnedAt < WARN_EVERY_MS) return;
    warnedAt = now;
    log.warn("a trusted proxy does not name the client", { proxy, sent: list !== undefined });
  };
}
