import type { KeyRing } from "./key-ring.ts";

/**
 * Returns the keys of the previous ring that the new one lacks. They still verify what they signed recently.
 *
 * @param until when the last of what they signed has expired, in milliseconds since the epoch.
 */
export function departedKeys(before: KeyRing, ring: KeyRing, until: number): KeyRing {
  const kept = new Set(ring.map(({ kid }) => kid));
  return before
    .filter(({ kid }) => !kept.has(kid))
    .map((key) => ({ ...key, verifiesUntil: Math.min(key.verifiesUntil, until) }));
}

/** Returns the same keys without their private parts, so that they only verify. */
export function verifyingOnly(ring: KeyRing): KeyRing {
  return ring.map((key) => ({ ...key, key: key.verifier, canSign: false }));
}
