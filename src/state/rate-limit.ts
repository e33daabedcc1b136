import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { RateLimit } from "../core/rate-limit.ts";
import type { Clock } from "../lib/clock.ts";

/** Some 15 MB at worst. Beyond it those are forgotten who were quiet longest: they begin with a whole burst again. */
const MAX_KEYS = 50_000;
/** A longer key is replaced by its hash: a subject can be as long as a token. */
const LONGEST_KEY = 128;
/** Less than this many milliseconds too early is a rounding. */
const ROUNDING_MS = 1e-6;

/**
 * Counts in memory by the generic cell rate algorithm (ITU-T I.371, annex A): for each key one number, the time at which all
 * that it has sent would be due if it came evenly. A window that starts anew would let two bursts follow each other.
 *
 * rate-limiter-flexible was tried first: its counts in memory have no bound (a million addresses: 495 MB and a million
 * timers; here 6 MB and none) and follow the wall clock.
 */
export function createRateLimit(
  options: Omit<RateLimit, "take">,
  clock: Pick<Clock, "monotonic">,
): RateLimit {
  const { requests, withinMs, burst } = options;
  const intervalMs = withinMs / requests;
  const due = new LRUCache<string, number>({ max: MAX_KEYS });
  return {
    ...options,
    take(caller) {
      const key = caller.length > LONGEST_KEY ? hash("sha256", caller, "base64url") : caller;
      const now = clock.monotonic();
      const behindMs = Math.max(0, (due.get(key) ?? now) - now);
      const waitMs = behindMs - (burst - 1) * intervalMs;
      if (waitMs > ROUNDING_MS) return { allowed: false, remaining: 0, waitMs };
      due.set(key, now + behindMs + intervalMs);
      const remaining = Math.floor(burst - 1 - behindMs / intervalMs + ROUNDING_MS);
      return { allowed: true, remaining: Math.max(0, remaining), waitMs: behindMs + intervalMs };
    },
  };
}
