import type { Clock } from "../../lib/clock.ts";
import { TwoGenerationCache } from "./two-generation-cache.ts";

export interface BanLimits {
  /** This number of failures within `withinMs` bans for `banMs`. */
  readonly attempts: number;
  readonly withinMs: number;
  readonly banMs: number;
}

/** Counts failures by key in a sliding window and bans keys that fail too often. */
export interface BanWindow {
  /** Milliseconds until the ban ends; 0 if the key is not banned. */
  bannedForMs(key: string): number;
  /** The number of failures within `withinMs` that count towards a ban. */
  recent(key: string): number;
  /**
   * Counts a failure. The last of `attempts` failures within `withinMs` bans the key; a running ban is not prolonged.
   *
   * @param agoMs how long ago it happened.
   */
  failed(key: string, agoMs?: number): void;
  forget(key: string): void;
  /** Applies new limits. A running ban is not prolonged, and ends early if the new limits make it shorter. */
  change(limits: BanLimits): void;
}

interface Entry {
  /** Monotonic times of the latest failures, oldest first; at most `attempts`. */
  readonly failures: number[];
  bannedAt: number;
  bannedUntil: number;
}

/** Maximum number of keys: about 15 MB. Beyond it, the keys that failed longest ago are forgotten. */
const MAX_KEYS = 50_000;
/** Maximum number of times stored for all keys together, 8 bytes each. */
const MAX_TIMES = 1_000_000;
const MIN_KEYS = 1_000;

export function createBanWindow(limits: BanLimits, clock: Clock): BanWindow {
  let { attempts, withinMs, banMs } = limits;
  const entries = new TwoGenerationCache<Entry>(mostKeys(limits));
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

    failed(key, agoMs = 0) {
      const now = clock.monotonic() - agoMs;
      const entry = entries.get(key) ?? {
        failures: [],
        bannedAt: -Infinity,
        bannedUntil: -Infinity,
      };
      entries.set(key, entry);
      if (now < banEnds(entry)) return;

      while ((entry.failures[0] ?? now) + withinMs < now) entry.failures.shift();
      entry.failures.push(now);
      // A failure reported late may be older than one already counted.
      if (agoMs > 0) entry.failures.sort((one, other) => one - other);
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

function mostKeys({ attempts }: BanLimits): number {
  return Math.max(MIN_KEYS, Math.min(MAX_KEYS, Math.floor(MAX_TIMES / attempts)));
}
