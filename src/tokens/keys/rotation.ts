import type { FoundKey } from "./key-directory.ts";
import type { KeyInState } from "./key-states.ts";

export interface KeyExpiry {
  readonly found: FoundKey;
  /** Seconds since the epoch. */
  readonly exp: number;
}

export interface RotationTimes {
  /** Wall clock, milliseconds since the epoch. */
  readonly nowMs: number;
  /** When the new key starts to sign, milliseconds since the epoch. */
  readonly signsFromMs: number;
  /** Lifetime of tokens, in milliseconds. */
  readonly lifetimeMs: number;
}

/**
 * Maximum difference between the clocks of replicas, in seconds. A replica whose clock is behind signs with the old key
 * that much longer.
 */
const CLOCK_SKEW_S = 60;

/**
 * Returns when the older signing keys expire after a rotation: each key expires with the last token that it signed. A
 * key that an earlier rotation has already given an expiry keeps it, unless that is too early.
 *
 * @param keys newest first, without the new one.
 */
export function expiriesAfterRotation(
  keys: readonly KeyInState[],
  { nowMs, signsFromMs, lifetimeMs }: RotationTimes,
): KeyExpiry[] {
  const ends: KeyExpiry[] = [];
  // When the next newer key starts to sign.
  let stops = signsFromMs;
  for (const found of keys.filter(({ canSign, state }) => canSign && state !== "expired")) {
    const exp = Math.ceil((Math.max(stops, nowMs) + lifetimeMs) / 1000) + CLOCK_SKEW_S;
    const tooEarly = stops > nowMs && found.verifiesUntil < exp * 1000;
    if (found.verifiesUntil === Infinity || tooEarly) ends.push({ found, exp });
    stops = Math.min(stops, Math.max(found.signsFrom, found.madeAt));
  }
  return ends;
}
