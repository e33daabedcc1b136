import type { Clock } from "../lib/clock.ts";
import { RecentKeys } from "./recent-keys.ts";

/** Counts failures in a row by key. A row ends when it is forgotten, or when nothing failed for a while. */
export interface FailureStreaks {
  length(key: string): number;
  /** Milliseconds until the row ends by itself; 0 when there is none. */
  endsInMs(key: string): number;
  failed(key: string): void;
  forget(key: string): void;
  /** Another time without failures ends a row, also one that runs. */
  change(quietMs: number): void;
}

interface Streak {
  readonly length: number;
  /** When it failed last; monotonic. */
  readonly failedAt: number;
}

/** Some 10 MB. Beyond it the keys that failed longest ago are forgotten. */
const MAX_KEYS = 50_000;

/** @param firstQuietMs for so long nothing must fail until a row has ended. */
export function createFailureStreaks(firstQuietMs: number, clock: Clock): FailureStreaks {
  let quietMs = firstQuietMs;
  const streaks = new RecentKeys<Streak>(MAX_KEYS);

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

    failed(key) {
      const length = (running(key)?.length ?? 0) + 1;
      streaks.set(key, { length, failedAt: clock.monotonic() });
    },

    forget: (key) => streaks.delete(key),

    change(latest) {
      quietMs = latest;
    },
  };
}
