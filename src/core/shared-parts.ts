import type { Revocation } from "./revocation.ts";

/** What replicas can share: the values of `shared.share`. */
export const SHARED_PARTS = ["throttle", "rateLimits", "concurrency", "revocation"] as const;

/** How a login attempt ended, as replicas tell each other: keyed digests, no names and no addresses. */
export interface AttemptEnd {
  readonly failed: boolean;
  readonly account: string;
  /** Account and network together. */
  readonly pair: string;
  /** The network. */
  readonly network: string;
  /** Whether the account had logged in from the network before. */
  readonly known: boolean;
}

/** What tells other replicas of login attempts. */
export interface AttemptSharing {
  /** A digest of fixed length that is the same in all replicas. */
  digest(text: string): string;
  /** Returns at once. */
  tell(end: AttemptEnd): void;
}

/** What one key of a rate limit has spent since it was last settled. */
export interface RateSpending {
  readonly key: string;
  /** Milliseconds of the limit: what a request costs times the requests. */
  readonly costMs: number;
}

/**
 * Adds up what all replicas have spent. @returns for each key, after how many milliseconds all of it is paid back;
 * undefined if it cannot be known. Never rejects.
 */
export type SettleRates = (
  spendings: readonly RateSpending[],
) => Promise<readonly number[] | undefined>;

/** How many requests this process has in flight of one key of a concurrency limit. */
export interface RequestsInFlight {
  readonly key: string;
  readonly requests: number;
}

/**
 * Tells how many requests are in flight here. @returns for each key, how many are in flight in other replicas; undefined if
 * it cannot be known. Never rejects.
 */
export type SettleConcurrency = (
  counts: readonly RequestsInFlight[],
) => Promise<readonly number[] | undefined>;

/** How replicas share what their limits count; what is left out is counted by each for itself. */
export interface SharedLimits {
  readonly settleRates?: SettleRates | undefined;
  readonly settleConcurrency?: SettleConcurrency | undefined;
}

/** Tells other replicas of revocations. @returns whether they are stored; waits for `shared.timeout` at most. */
export type ShareRevocations = (revocations: readonly Revocation[]) => Promise<boolean>;

/** What is asked of the state server: the `operation` of `shared_state_operations_total`. */
export const SHARED_OPERATIONS = ["connect", "publish", "settle", "read"] as const;
export type SharedOperation = (typeof SHARED_OPERATIONS)[number];
