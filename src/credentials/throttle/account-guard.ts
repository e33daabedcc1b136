import type { Clock } from "../../lib/clock.ts";
import { createExactCounts, createFailureSketch } from "./consecutive-failures.ts";
import { TwoGenerationCache } from "./two-generation-cache.ts";

export interface AccountLimits {
  /** Consecutive failures, from any network, that put a name under guard. */
  readonly attempts: number;
  /** Consecutive failures end after this time without a failure. */
  readonly withinMs: number;
}

/** Bounds the guesses at one name over all networks, however slow they are. */
export interface AccountGuard {
  /** Reports whether a name has logged in from a network before. */
  knows(pair: AccountPair): boolean;
  /** Returns the milliseconds that a network must wait before it tries the name again; 0 if it need not wait. */
  waitMs(attempt: Attempt): number;
  /** The number of failures that the network has left for the name. */
  remaining(attempt: Attempt): number;
  /** @param agoMs how long ago it happened. */
  failed(attempt: Attempt, agoMs?: number): void;
  /** The network is known to the name from now on. */
  succeeded(pair: AccountPair): void;
  /** Applies new limits; all counts stay. */
  change(limits: AccountLimits): void;
}

/** A name and a network, as digests. */
export interface AccountPair {
  readonly account: string;
  /** Account and network together. */
  readonly pair: string;
}

export interface Attempt extends AccountPair {
  /** Whether this account has logged in from this network before. */
  readonly known: boolean;
}

interface KnownNetwork {
  readonly pair: string;
  /** Monotonic. */
  readonly until: number;
}

const REMEMBERED_MS = 30 * 24 * 3_600_000;
/**
 * Networks remembered for each name. For a client that uses more (a phone, or an attacker who wants to fill the
 * memory), the oldest are forgotten.
 */
const NETWORKS_EACH = 8;
/**
 * Maximum number of names with known networks: about 10 MB. Beyond it, the networks of the names that logged in longest
 * ago become unknown again. Only a right password adds one, so attackers cannot fill the memory.
 */
const MAX_NAMES = 10_000;

/** Failures that a guarded name allows each unknown network: people mistype. */
const UNKNOWN_NETWORK_TRIES = 3;

/**
 * Cells in each row of the sketches: 6 MB and 13 MB once all are used. Simulated with 300 failures a minute
 * (`login.throttle.global`), each for another name from another network, for weeks without a pause: a new name reads 3
 * failures (never more than 11 of 100), and 0.3 % of new pairs read 3.
 */
const NAME_CELLS = 2 ** 17;
const UNKNOWN_PAIR_CELLS = 2 ** 18;

/**
 * Creates the guard. Slow guessing, and guessing from many networks, evade any limit per network and minute. NIST SP
 * 800-63B §5.2.2 allows 100 consecutive failures on one account. Locking the account then would let anybody lock users
 * out, so the name is guarded instead. Known networks (those from which the name has logged in, as the same section
 * advises) may each have up to `attempts` consecutive failures. Unknown networks get three, and are then refused until
 * a time without failures has passed. A single network therefore never gets more than `attempts`, three more guesses
 * cost another network, and the owner gets in with the right password from every network that nobody guesses from.
 *
 * Failures from unknown networks are counted in sketches, which never forget early, however many other names fail.
 * Known pairs are counted exactly, since only a right password adds one.
 */
export function createAccountGuard(limits: AccountLimits, clock: Clock): AccountGuard {
  const { withinMs } = limits;
  let { attempts } = limits;
  const networks = new TwoGenerationCache<readonly KnownNetwork[]>(MAX_NAMES);
  const accounts = createFailureSketch(NAME_CELLS, withinMs, clock);
  const unknownPairs = createFailureSketch(UNKNOWN_PAIR_CELLS, withinMs, clock);
  const knownPairs = createExactCounts(withinMs, clock);
  const countersFor = (attempt: Attempt) => (attempt.known ? knownPairs : unknownPairs);
  const attemptsFor = (attempt: Attempt): number =>
    attempt.known ? attempts : UNKNOWN_NETWORK_TRIES;

  return {
    knows({ account, pair }) {
      const known = networks.get(account)?.find((each) => each.pair === pair);
      return known !== undefined && clock.monotonic() < known.until;
    },

    waitMs(attempt) {
      if (accounts.length(attempt.account) < attempts) return 0;
      const counters = countersFor(attempt);
      return counters.length(attempt.pair) < attemptsFor(attempt)
        ? 0
        : counters.endsInMs(attempt.pair);
    },

    remaining(attempt) {
      const untilGuarded = attempts - accounts.length(attempt.account);
      const ofPair = attemptsFor(attempt) - countersFor(attempt).length(attempt.pair);
      return Math.max(untilGuarded, ofPair);
    },

    failed(attempt, agoMs) {
      accounts.failed(attempt.account, agoMs);
      countersFor(attempt).failed(attempt.pair, agoMs);
    },

    /** Failures that the network had as an unknown one no longer matter. */
    succeeded({ account, pair }) {
      knownPairs.forget(pair);
      const others = networks.get(account)?.filter((each) => each.pair !== pair) ?? [];
      const latest = { pair, until: clock.monotonic() + REMEMBERED_MS };
      networks.set(account, [...others, latest].slice(-NETWORKS_EACH));
    },

    change(latest) {
      ({ attempts } = latest);
      for (const counters of [accounts, unknownPairs, knownPairs]) counters.change(latest.withinMs);
    },
  };
}
