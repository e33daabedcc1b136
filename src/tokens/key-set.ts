import type { KeyObject } from "node:crypto";
import type { SigningAlgorithm } from "./algorithms.ts";

/** A key that signatures are checked with. The algorithms are fixed by the key, never by a token (RFC 8725 §3.1). */
export interface VerificationKey {
  readonly kid: string | undefined;
  readonly algorithms: readonly SigningAlgorithm[];
  /** A public key, or a secret. */
  readonly key: KeyObject;
  /** When it ends, in milliseconds since the epoch, whatever the tokens say; left out where it does not. */
  readonly until?: number;
}

/** The keys of one issuer, which may change while we run. */
export interface KeySource {
  /** The keys known now; undefined as long as none could be loaded. */
  current(): readonly VerificationKey[] | undefined;
  /** Asks where the keys come from, unless that was done a moment ago. A failure leaves the known keys as they are. */
  refresh(): Promise<void>;
  close(): void;
}

/**
 * The key that a token must be verified with. Without a `kid` there must be exactly one that fits: trying several would
 * let a stranger choose how much work we do.
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
