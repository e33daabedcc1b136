import type { KeyRing } from "./key-ring.ts";

/**
 * Returns what a ring is followed by: the keys before that it lacks, which what they signed lately is still verified with.
 *
 * @param until when the last of that has ended, in milliseconds since the epoch.
 */
export function departedKeys(before: KeyRing, ring: KeyRing, until: number): KeyRing {
  const kept = new Set(ring.map(({ kid }) => kid));
  return before
    .filter(({ kid }) => !kept.has(kid))
    .map((key) => ({ ...key, verifiesUntil: Math.min(key.verifiesUntil, until) }));
}

/** The same keys without those that sign. */
export function verifyingOnly(ring: KeyRing): KeyRing {
  return ring.map((key) => ({ ...key, key: key.verifier, canSign: false }));
}
