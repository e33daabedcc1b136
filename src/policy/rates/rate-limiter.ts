import { hash } from "node:crypto";
import type { RateLimit } from "../../core/route/rate-limit.ts";
import type { SettleRates } from "../../core/shared-parts.ts";
import { type ArrivalTimes, ROUNDING_MS } from "./arrival-times.ts";
import { RateSettling } from "./rate-settling.ts";

/** Maximum length of a key. A longer one is replaced by its hash: a subject can be as long as a token. */
const LONGEST_KEY = 128;
/** No key waits longer than the time of this many bursts, whatever the server says that other replicas have spent. */
const MOST_BURSTS = 10;

/**
 * Creates a rate limit that uses the generic cell rate algorithm (ITU-T I.371, annex A). It keeps one number for each
 * key: the time at which all requests so far would be due if they arrived at a constant rate. A fixed window would
 * allow two bursts in succession.
 *
 * rate-limiter-flexible was tried first. Its counts in memory are unbounded (a million addresses took 495 MB and a
 * million timers; here 6 MB and none), and it depends on the wall clock.
 *
 * @param times the arrival times of the keys, in this thread or over all threads of the process.
 * @param settle adds up the spending of all replicas. Without it, this replica counts on its own.
 */
export function createRateLimit(
  options: Omit<RateLimit, "take">,
  times: ArrivalTimes,
  settle?: SettleRates,
): RateLimit {
  const { requests, withinMs, burst } = options;
  const intervalMs = withinMs / requests;
  const burstMs = (burst - 1) * intervalMs;
  const mostMs = MOST_BURSTS * burst * intervalMs;
  const settling =
    settle &&
    new RateSettling(settle, intervalMs, (key, aheadMs) =>
      times.raise(key, Math.min(aheadMs, mostMs)),
    );
  return {
    ...options,
    take(caller) {
      const key = caller.length > LONGEST_KEY ? hash("sha256", caller, "base64url") : caller;
      const aheadMs = times.take(key, intervalMs, burstMs);
      const waitMs = aheadMs - burstMs;
      if (waitMs > ROUNDING_MS) return { allowed: false, remaining: 0, waitMs };
      settling?.spend(key);
      const remaining = Math.floor(burst - 1 - aheadMs / intervalMs + ROUNDING_MS);
      return { allowed: true, remaining: Math.max(0, remaining), waitMs: aheadMs + intervalMs };
    },
  };
}
