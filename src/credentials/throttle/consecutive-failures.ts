import type { Clock } from "../../lib/clock.ts";
import { TwoGenerationCache } from "./two-generation-cache.ts";

/**
 * Counts consecutive failures by key, exactly. A count ends when `forget` is called, or after a time without failures.
 * Beyond the maximum, the oldest keys are forgotten.
 */
export interface ConsecutiveFailures {
  length(key: string): number;
  /** Milliseconds until the count ends by itself; 0 if there is none. */
  endsInMs(key: string): number;
  /** @param agoMs how long ago it happened. */
  failed(key: string, agoMs?: number): void;
  forget(key: string): void;
  /** Changes the time without failures that ends a count, including running ones. */
  change(quietMs: number): void;
}

interface Streak {
  readonly length: number;
  /** Monotonic time of the last failure. */
  readonly failedAt: number;
}

/** Maximum number of keys: about 10 MB. Beyond it, the keys that failed longest ago are forgotten. */
const MAX_KEYS = 50_000;

/** @param firstQuietMs time without failures that ends a count, in milliseconds. */
export function createConsecutiveFailures(firstQuietMs: number, clock: Clock): ConsecutiveFailures {
  let quietMs = firstQuietMs;
  const streaks = new TwoGenerationCache<Streak>(MAX_KEYS);

  function running(key: string): Streak | undefined {
    const streak = streaks.get(key);
    return streak !== undefined && clock.monotonic() < streak.failedAt + quietMs
      ? streak
      : undefined;
  }

  return {
    length: (key) => running(key)?.length ?? 0,

    endsInMs(key) {
      const streak = running(key);
      return streak === undefined ? 0 : streak.failedAt + quietMs - clock.monotonic();
    },

    failed(key, agoMs = 0) {
      const { length = 0, failedAt = -Infinity } = running(key) ?? {};
      const last = Math.max(failedAt, clock.monotonic() - agoMs);
      streaks.set(key, { length: length + 1, failedAt: last });
    },

    forget: (key) => streaks.delete(key),

    change(latest) {
      quietMs = latest;
    },
  };
}
