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
  /** How many failures within `withinMs` are counted towards a ban. */
  recent(key: string): number;
  /** Bans the key when this is the last of `attempts` failures within `withinMs`; a ban that runs is not prolonged. */
  failed(key: string): void;
  forget(key: string): void;
  /** Counts on by other limits. A ban that runs is not prolonged, and ends when one by the new limits would have. */
  change(limits: FailureLimits): void;
}

interface Entry {
  /** Monotonic times of the latest failures, oldest first; never more than `attempts`. */
  readonly failures: number[];
  bannedAt: number;
  bannedUntil: number;
}

/** Some 15 MB at worst. Beyond it the keys that failed longest ago are forgotten. */
const MAX_KEYS = 50_000;
/** Of all keys together: each takes 8 bytes. */
const MAX_TIMES = 1_000_000;
const MIN_KEYS = 1_000;

export function createFailureCount(limits: FailureLimits, clock: Clock): FailureCount {
  let { attempts, withinMs, banMs } = limits;
  const entries = new RecentKeys<Entry>(mostKeys(limits));
  const banEnds = ({ bannedAt, bannedUntil }: Entry): number =>
    Math.min(bannedUntil, bannedAt + banMs);

  return {
    bannedForMs(key) {
      const entry = entries.get(key);
      return entry === undefined ? 0 : Math.max(0, banEnds(entry) - clock.monotonic());
    },

    recent(key) {
      const since = clock.monotonic() - withinMs;
      return entries.get(key)?.failures.filter((time) => time >= since).length ?? 0;
    },

    failed(key) {
      const now = clock.monotonic();
      const entry = entries.get(key) ?? { failures: [], bannedAt: 0, bannedUntil: 0 };
      entries.set(key, entry);
      if (now < banEnds(entry)) return;

      while ((entry.failures[0] ?? now) + withinMs < now) entry.failures.shift();
      entry.failures.push(now);
      if (entry.failures.length >= attempts) {
        entry.failures.length = 0;
        entry.bannedAt = now;
        entry.bannedUntil = now + banMs;
      }
    },

    forget: (key) => entries.delete(key),

    change(latest) {
      ({ attempts, withinMs, banMs } = latest);
      entries.resize(mostKeys(latest));
    },
  };
}

function mostKeys({ attempts }: FailureLimits): number {
  return Math.max(MIN_KEYS, Math.min(MAX_KEYS, Math.floor(MAX_TIMES / attempts)));
}
