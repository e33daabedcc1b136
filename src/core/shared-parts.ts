import type { Revocation } from "./revocation.ts";

/** What replicas can share: the values of `shared.share`. */
export const SHARED_PARTS = [
  "throttle",
  "rateLimits",
  "concurrency",
  "revocation",
  "proofs",
] as const;

/** The result of a login attempt in the form that replicas exchange: keyed digests instead of names and addresses. */
export interface AttemptEnd {
  readonly failed: boolean;
  readonly account: string;
  /** Account and network together. */
  readonly pair: string;
  /** The network. */
  readonly network: string;
  /** Whether the account had logged in from this network before. */
  readonly known: boolean;
}

/** Publishes login attempts to other replicas. */
export interface AttemptSharing {
  /** Returns a digest of fixed length that is the same in all replicas. */
  digest(text: string): string;
  /** Publishes an attempt. Returns immediately. */
  tell(end: AttemptEnd): void;
}

/** The requests of one key of a rate limit since the last settlement. */
interface RateSpending {
  readonly key: string;
  /** The number of requests times the cost of one in the limit's time, in milliseconds. */
  readonly costMs: number;
}

/**
 * Adds up the spending of all replicas. Never rejects.
 *
 * @returns for each key, the milliseconds until all of it is paid back; undefined if that is unknown.
 */
export type SettleRates = (
  spendings: readonly RateSpending[],
) => Promise<readonly number[] | undefined>;

/** The requests of one key of a concurrency limit that this process has in flight. */
export interface RequestsInFlight {
  readonly key: string;
  readonly requests: number;
}

/**
 * Publishes how many requests are in flight here. Never rejects.
 *
 * @returns for each key, how many requests are in flight in other replicas; undefined if that is unknown.
 */
export type SettleConcurrency = (
  counts: readonly RequestsInFlight[],
) => Promise<readonly number[] | undefined>;

/**
 * Remembers a DPoP proof until it ends. Never rejects.
 *
 * @param forMs how long, in milliseconds.
 * @returns whether no replica has seen it before; undefined if that is unknown.
 */
export type RememberProof = (name: string, forMs: number) => Promise<boolean | undefined>;

/** How replicas share the counts of limits. If a function is missing, each replica counts on its own. */
export interface SharedLimits {
  readonly settleRates?: SettleRates | undefined;
  readonly settleConcurrency?: SettleConcurrency | undefined;
  readonly rememberProof?: RememberProof | undefined;
}

/**
 * Publishes revocations to other replicas. Waits at most `shared.timeout`.
 *
 * @returns whether the server has stored them.
 */
export type ShareRevocations = (revocations: readonly Revocation[]) => Promise<boolean>;

/** The kinds of questions to the state server: the `operation` of `shared_state_operations_total`. */
export const SHARED_OPERATIONS = ["connect", "publish", "settle", "read", "remember"] as const;
export type SharedOperation = (typeof SHARED_OPERATIONS)[number];
