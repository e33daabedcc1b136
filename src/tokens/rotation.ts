import type { FoundKey } from "./key-directory.ts";
import type { KeyInState } from "./key-states.ts";

export interface Ending {
  readonly found: FoundKey;
  /** Seconds since the epoch. */
  readonly exp: number;
}

export interface RotationTimes {
  /** Wall clock, milliseconds since the epoch. */
  readonly nowMs: number;
  /** From when on the new key signs, milliseconds since the epoch. */
  readonly signsFromMs: number;
  /** How long tokens live, in milliseconds. */
  readonly lifetimeMs: number;
}

/** How far the clocks of replicas may be apart: one that is behind goes on signing with the old key for so long. */
const CLOCKS_S = 60;

/**
 * The ends that a new key gives to the older ones that can sign: when the last token signed with each has ended. A key
 * that has such an end already, from an earlier rotation, keeps it.
 * @param keys newest first, without the new one.
 */
export function endings(
  keys: readonly KeyInState[],
  { nowMs, signsFromMs, lifetimeMs }: RotationTimes,
): Ending[] {
  const ends: Ending[] = [];
  // When the next newer key takes over.
  let stops = signsFromMs;
  for (const found of keys.filter(({ canSign, state }) => canSign && state !== "over")) {
    const exp = Math.ceil((Math.max(stops, nowMs) + lifetimeMs) / 1000) + CLOCKS_S;
    const tooEarly = stops > nowMs && found.verifiesUntil < exp * 1000;
    if (found.verifiesUntil === Infinity || tooEarly) ends.push({ found, exp });
    stops = Math.min(stops, Math.max(found.signsFrom, found.madeAt));
  }
  return ends;
}
