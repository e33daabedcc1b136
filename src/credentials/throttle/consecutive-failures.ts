import type { Clock } from "../../lib/clock.ts";
import { TwoGenerationCache } from "./two-generation-cache.ts";

/** Counts consecutive failures by key. A count ends by itself after a time without failures. */
export interface ConsecutiveFailures {
  length(key: string): number;
  /** Milliseconds until the count ends by itself; 0 if there is none. */
  endsInMs(key: string): number;
  /** @param agoMs how long ago it happened. */
  failed(key: string, agoMs?: number): void;
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

/**
 * Counts exactly. Beyond the maximum, the oldest keys are forgotten.
 *
 * @param firstQuietMs time without failures that ends a count, in milliseconds.
 */
export function createExactCounts(
  firstQuietMs: number,
  clock: Clock,
): ConsecutiveFailures & { forget(key: string): void } {
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

/** Rows of the sketch. Each key has one cell in each row. */
const ROWS = 4;

/**
 * Counts in fixed memory. May read too high, never too low: this is a count-min sketch (Cormode and Muthukrishnan, 2005)
 * with conservative update (Estan and Varghese, 2002), in which a key reads its lowest cell. Other keys can only raise a
 * cell. So no number of them can lower a count or end it early, unlike in a table that evicts entries. A cell without
 * failures for `firstQuietMs` counts from 0 again.
 *
 * Keys are base64url of at least 16 bytes that nobody outside can choose or predict: a keyed digest.
 *
 * @param cells per row, a power of two. Each takes 48 bytes, which the system allocates on the first write.
 */
export function createFailureSketch(
  cells: number,
  firstQuietMs: number,
  clock: Clock,
): ConsecutiveFailures {
  let quietMs = firstQuietMs;
  const counts = new Uint32Array(ROWS * cells);
  const failedAt = new Float64Array(ROWS * cells);

  function placesOf(key: string): readonly number[] {
    const digest = Buffer.from(key, "base64url");
    return Array.from(
      { length: ROWS },
      (_, row) => row * cells + (digest.readUInt32LE(row * 4) & (cells - 1)),
    );
  }

  function countAt(place: number): number {
    const ended = clock.monotonic() >= (failedAt[place] ?? 0) + quietMs;
    return ended ? 0 : (counts[place] ?? 0);
  }

  const lowest = (places: readonly number[]): number => Math.min(...places.map(countAt));

  return {
    length: (key) => lowest(placesOf(key)),

    endsInMs(key) {
      const places = placesOf(key);
      if (lowest(places) === 0) return 0;
      const quietSince = Math.min(...places.map((place) => failedAt[place] ?? 0));
      return quietSince + quietMs - clock.monotonic();
    },

    failed(key, agoMs = 0) {
      const places = placesOf(key);
      const length = lowest(places) + 1;
      for (const place of places) {
        const last = countAt(place) === 0 ? -Infinity : (failedAt[place] ?? 0);
        counts[place] = Math.max(countAt(place), length);
        failedAt[place] = Math.max(last, clock.monotonic() - agoMs);
      }
    },

    change(latest) {
      quietMs = latest;
    },
  };
}
