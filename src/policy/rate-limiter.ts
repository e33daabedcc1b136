import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { RateLimit } from "../core/route/rate-limit.ts";
import type { SettleRates } from "../core/shared-parts.ts";
import type { Clock } from "../lib/clock.ts";
import { RateSettling } from "./rate-settling.ts";

/**
 * Maximum number of keys: about 15 MB. Beyond it, the least recently active are evicted and start with a full burst
 * again.
 */
const MAX_KEYS = 50_000;
/** Maximum length of a key. A longer one is replaced by its hash: a subject can be as long as a token. */
const LONGEST_KEY = 128;
/** No key waits for longer than this many bursts, whatever other replicas are said to have spent. */
const MOST_BURSTS = 10;
/** Tolerance for rounding errors, in milliseconds. */
const ROUNDING_MS = 1e-6;

/**
 * A rate limit in memory by the generic cell rate algorithm (ITU-T I.371, annex A). For each key it keeps one number:
 * the time at which all requests so far would be due if they came evenly. A fixed window would allow two bursts in a
 * row.
 *
 * rate-limiter-flexible was tried first: its counts in memory are unbounded (a million addresses took 495 MB and a
 * million timers; here 6 MB and none) and follow the wall clock.
 *
 * @param settle adds up what all replicas have spent; left out, this one counts for itself.
 */
export function createRateLimit(
  options: Omit<RateLimit, "take">,
  clock: Pick<Clock, "monotonic">,
  settle?: SettleRates,
): RateLimit {
  const { requests, withinMs, burst } = options;
  const intervalMs = withinMs / requests;
  const due = new LRUCache<string, number>({ max: MAX_KEYS });
  const mostMs = MOST_BURSTS * burst * intervalMs;
  const settling =
    settle &&
    new RateSettling(settle, intervalMs, (key, behindMs) =>
      due.set(key, clock.monotonic() + Math.min(behindMs, mostMs)),
    );
  return {
    ...options,
    take(caller) {
      const key = caller.length > LONGEST_KEY ? hash("sha256", caller, "base64url") : caller;
      const now = clock.monotonic();
      const behindMs = Math.max(0, (due.get(key) ?? now) - now);
      const waitMs = behindMs - (burst - 1) * intervalMs;
      if (waitMs > ROUNDING_MS) return { allowed: false, remaining: 0, waitMs };
      due.set(key, now + behindMs + intervalMs);
      settling?.spend(key);
      const remaining = Math.floor(burst - 1 - behindMs / intervalMs + ROUNDING_MS);
      return { allowed: true, remaining: Math.max(0, remaining), waitMs: behindMs + intervalMs };
    },
  };
}
