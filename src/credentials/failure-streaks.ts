import type { Clock } from "../lib/clock.ts";
import { RecentKeys } from "./recent-keys.ts";

/** Counts failures in a row by key. A row ends when it is forgotten, or when nothing failed for a while. */
export interface FailureStreaks {
  length(key: string): number;
  /** Milliseconds until the row ends by itself; 0 when there is none. */
  endsInMs(key: string): number;
  failed(key: string): void;
  forget(key: string): void;
}

interface Streak {
  readonly length: number;
  /** Monotonic. */
  readonly endsAt: number;
}

/** Some 10 MB. Beyond it the keys that failed longest ago are forgotten. */
const MAX_KEYS = 50_000;

/** @param quietMs for so long nothing must fail until a row has ended. */
export function createFailureStreaks(quietMs: number, clock: Clock): FailureStreaks {
  const streaks = new RecentKeys<Streak>(MAX_KEYS);

  function running(key: string): Streak | undefined {
    const streak = streaks.get(key);
    return streak !== undefined && clock.monotonic() < streak.endsAt ? streak : undefined;
  }

  return {
    length: (key) => running(key)?.length ?? 0,

    endsInMs(key) {
      const streak = running(key);
      return streak === undefined ? 0 : streak.endsAt - clock.monotonic();
    },

    failed(key) {
      const length = (running(key)?.length ?? 0) + 1;
      streaks.set(key, { length, endsAt: clock.monotonic() + quietMs });
    },

    forget: (key) => streaks.delete(key),
  };
}
