import type { Clock } from "../lib/clock.ts";

export interface FailureLimits {
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

/** Some 20 MB at worst. Beyond it the key that failed longest ago is forgotten. */
const MAX_KEYS = 50_000;

export function createFailureCount(
  { attempts, withinMs, banMs }: FailureLimits,
  clock: Clock,
): FailureCount {
  const entries = new Map<string, Entry>();

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
      entries.delete(key);
      entries.set(key, entry);
      if (now < entry.bannedUntil) return;

      while ((entry.failures[0] ?? now) + withinMs < now) entry.failures.shift();
      entry.failures.push(now);
      if (entry.failures.length >= attempts) {
        entry.failures.length = 0;
        entry.bannedUntil = now + banMs;
      }
      dropOldest(entries);
    },

    forget(key) {
      entries.delete(key);
    },
  };
}

/** A map keeps the order of insertion, and a failure inserts its key again. */
function dropOldest(entries: Map<string, Entry>): void {
  if (entries.size <= MAX_KEYS) return;
  const { value: oldest } = entries.keys().next();
  if (oldest !== undefined) entries.delete(oldest);
}
