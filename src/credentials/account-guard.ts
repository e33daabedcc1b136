import type { Clock } from "../lib/clock.ts";
import { createFailureStreaks } from "./failure-streaks.ts";

export interface AccountLimits {
  /** So many failures in a row, from wherever, raise the guard of a name. */
  readonly attempts: number;
  /** A row ends when nothing failed for so long. */
  readonly withinMs: number;
}

/** Bounds the guesses at one name over all networks and all time. */
export interface AccountGuard {
  /** Milliseconds that a network must wait before it tries the name again; 0 when it may now. */
  waitMs(attempt: Attempt): number;
  /** How many more failures the network may have with the name. */
  remaining(attempt: Attempt): number;
  failed(attempt: Attempt): void;
  succeeded(attempt: Attempt): void;
  /** Goes on with what was counted, by other limits. */
  change(limits: AccountLimits): void;
}

export interface Attempt {
  readonly account: string;
  /** Account and network together. */
  readonly pair: string;
  /** Whether this account has logged in from this network before. */
  readonly familiar: boolean;
}

/** People mistype; a network that is new to a name gets this many tries while the guard is up. */
const STRANGERS_TRIES = 3;

/**
 * Slow guessing, and guessing from many networks, passes any limit per network and minute. NIST SP 800-63B §5.2.2 allows
 * 100 failures in a row on one account. To close the account then would hand the key for locking people out to everybody,
 * so after that number the name is guarded instead: networks that it has logged in from go on (the section's own advice),
 * each with `attempts` failures in a row at most; any other gets three tries, and is refused until a time without
 * failures has passed. One network alone so never has more than `attempts`; whoever wants three more must have another
 * network; and the owner with the right password gets in from everywhere where nobody has been guessing.
 */
export function createAccountGuard(limits: AccountLimits, clock: Clock): AccountGuard {
  const { withinMs } = limits;
  let { attempts } = limits;
  const accounts = createFailureStreaks(withinMs, clock);
  const pairs = createFailureStreaks(withinMs, clock);
  const tries = (familiar: boolean): number => (familiar ? attempts : STRANGERS_TRIES);

  return {
    waitMs({ account, pair, familiar }) {
      if (accounts.length(account) < attempts) return 0;
      return pairs.length(pair) < tries(familiar) ? 0 : pairs.endsInMs(pair);
    },

    remaining({ account, pair, familiar }) {
      const untilGuarded = attempts - accounts.length(account);
      return Math.max(untilGuarded, tries(familiar) - pairs.length(pair));
    },

    failed({ account, pair }) {
      accounts.failed(account);
      pairs.failed(pair);
    },

    succeeded({ pair }) {
      pairs.forget(pair);
    },

    change(latest) {
      ({ attempts } = latest);
      accounts.change(latest.withinMs);
      pairs.change(latest.withinMs);
    },
  };
}
