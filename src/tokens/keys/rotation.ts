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
 * Maximum difference between the clocks of replicas, in seconds: one that is behind signs with the old key for that
 * much longer.
 */
const CLOCK_SKEW_S = 60;

/**
 * Returns when the older signing keys expire after a rotation: each when the last token that it signed has expired. A
 * key that already expires because of an earlier rotation keeps its time.
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
