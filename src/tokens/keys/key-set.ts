import type { KeyObject } from "node:crypto";
import type { SigningAlgorithm } from "./algorithms.ts";

/** A key that verifies signatures. The key determines the algorithms, never a token (RFC 8725 §3.1). */
export interface VerificationKey {
  readonly kid: string | undefined;
  readonly algorithms: readonly SigningAlgorithm[];
  /** A public key, or a secret. */
  readonly key: KeyObject;
  /** When it expires, in milliseconds since the epoch, whatever the tokens say; undefined if it does not expire. */
  readonly until?: number;
}

/** The keys of one issuer, which may change at run time. */
export interface KeySource {
  /** The keys known now; undefined as long as none could be loaded. */
  current(): readonly VerificationKey[] | undefined;
  /**
   * When the keys were last read, in milliseconds since the epoch; undefined if never, or if this thread does not know.
   */
  readAt?(): number | undefined;
  /**
   * Fetches the keys again, unless that just happened. A failure keeps the known keys.
   * @param kid the missing key. If it was missing from a recent fetch, the set is not fetched again for it.
   */
  refresh(kid?: string): Promise<void>;
  close(): void;
}

/**
 * Selects the key that a token must be verified with. Without a `kid`, exactly one key must fit: if we tried several, a
 * client could decide how much we compute.
 */
export function selectKey(
  keys: readonly VerificationKey[],
  kid: string | undefined,
  algorithm: SigningAlgorithm,
): VerificationKey | "unknown_key" | "algorithm" {
  const named = kid === undefined ? keys : keys.filter((key) => key.kid === kid);
  if (named.length === 0) return "unknown_key";
  const [fitting, another] = named.filter((key) => key.algorithms.includes(algorithm));
  if (fitting === undefined) return "algorithm";
  return another === undefined ? fitting : "unknown_key";
}
