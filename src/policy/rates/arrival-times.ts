import { LRUCache } from "lru-cache";
import type { Clock } from "../../lib/clock.ts";

/**
 * The maximum number of keys: about 15 MB. Beyond it, the least recently active keys are evicted and get a full burst
 * again.
 */
const MAX_KEYS = 50_000;
/** The tolerance for rounding errors, in milliseconds. */
export const ROUNDING_MS = 1e-6;

/**
 * The theoretical arrival time of each key of a rate limit: the time at which all requests so far would be due if
 * they arrived at a constant rate (ITU-T I.371, annex A). Expressed as milliseconds ahead of now; 0 for a key that
 * owes nothing.
 */
export interface ArrivalTimes {
  /** Advances the time by `costMs`, unless it is more than `mostMs` ahead. @returns how far ahead it was before. */
  take(key: string, costMs: number, mostMs: number): number;
  /** Advances the time until it is at least this far ahead. */
  raise(key: string, aheadMs: number): void;
}

/** Creates the times of one limit in one thread. */
export function localArrivalTimes(clock: Pick<Clock, "monotonic">): ArrivalTimes {
  const times = new LRUCache<string, number>({ max: MAX_KEYS });
  return {
    take(key, costMs, mostMs) {
      const now = clock.monotonic();
      const aheadMs = Math.max(0, (times.get(key) ?? now) - now);
      if (aheadMs <= mostMs + ROUNDING_MS) times.set(key, now + aheadMs + costMs);
      return aheadMs;
    },
    raise(key, aheadMs) {
      const time = clock.monotonic() + aheadMs;
      if (time > (times.get(key) ?? 0)) times.set(key, time);
    },
  };
}
