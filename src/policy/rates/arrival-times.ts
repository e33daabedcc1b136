import { LRUCache } from "lru-cache";
import type { Clock } from "../../lib/clock.ts";

/** Maximum number of keys: about 15 MB. Beyond it, the least recently active are evicted and start with a full burst again. */
const MAX_KEYS = 50_000;
/** Tolerance for rounding errors, in milliseconds. */
export const ROUNDING_MS = 1e-6;

/**
 * For each key of a rate limit, its theoretical arrival time: when all requests so far would be due if they came evenly
 * (ITU-T I.371, annex A). It is told as how far it lies ahead, in milliseconds; 0 is a key that owes nothing.
 */
export interface ArrivalTimes {
  /** Moves it on by `costMs`, unless it is more than `mostMs` ahead. @returns how far ahead it was before. */
  take(key: string, costMs: number, mostMs: number): number;
  /** Moves it on until it is this far ahead, if it is not yet. */
  raise(key: string, aheadMs: number): void;
}

/** Of one limit in one thread. */
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
