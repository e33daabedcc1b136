import { type KeySource, selectKey, type VerificationKey } from "../keys/key-set.ts";
import type { UnverifiedToken } from "./token-text.ts";

/** Finds the key that a token names among the keys of its issuer; undefined as long as no keys could be loaded. */
export function findKey(
  keys: KeySource,
  { kid, algorithm }: UnverifiedToken,
): VerificationKey | "unknown_key" | "algorithm" | undefined {
  const known = keys.current();
  return known && selectKey(known, kid, algorithm);
}
