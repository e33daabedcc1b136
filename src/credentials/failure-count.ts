import type { Clock } from "../lib/clock.ts";
import { RecentKeys } from "./recent-keys.ts";

export interface FailureLimits {
  /** So many failures within `withinMs` ban for `banMs`. */
  readonly attempts: number;
  readonly withinMs: number;
  readonly banMs: number;
}

/** Counts failures by key and bans keys that fail too often. */
export interface FailureCount {
  /** Milliseconds until the key is free again; 0 when it is. */
  bannedForMs(key: string): number;
  /** How many more failures there may be before the key is banned. */
  remaining(key: string): number;
  /** Bans the key when this is the last of `attempts` failures within `withinMs`; a ban that runs is not prolonged. */
  failed(key: string): void;
  forget(key: string): void;
}

interface Entry {
  /** Monotonic times of the latest failures, oldest first; never more than `attempts`. */
  readonly failures: number[];
  bannedUntil: number;
}

/** Some 15 MB at worst. Beyond it the keys that failed longest ago are forgotten. */
const MAX_KEYS = 50_000;
/** Of all keys together: each takes 8 bytes. */
const MAX_TIMES = 1_000_000;
const MIN_KEYS = 1_000;

export function createFailureCount(
  { attempts, withinMs, banMs }: FailureLimits,
  clock: Clock,
): FailureCount {
  const most = Math.max(MIN_KEYS, Math.min(MAX_KEYS, Math.floor(MAX_TIMES / attempts)));
  const entries = new RecentKeys<Entry>(most);

  return {
    bannedForMs(key) {
      const entry = entries.get(key);
      return entry === undefined ? 0 : Math.max(0, entry.bannedUntil - clock.monotonic());
    },

    remaining(key) {
      const since = clock.monotonic() - withinMs;
      const recent = entries.get(key)?.failures.filter((time) => time >= since) ?? [];
      return attempts - recent.length;
    },

    failed(key) {
      const now = clock.monotonic();
      const entry = entries.get(key) ?? { failures: [], bannedUntil: 0 };
      entries.set(key, entry);
      if (now < entry.bannedUntil) return;

      while ((entry.failures[0] ?? now) + withinMs < now) entry.failures.shift();
      entry.failures.push(now);
      if (entry.failures.length >= attempts) {
        entry.failures.length = 0;
        entry.bannedUntil = now + banMs;
      }
    },

    forget: (key) => entries.delete(key),
  };
}
