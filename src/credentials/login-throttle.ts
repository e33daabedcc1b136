import { hash } from "node:crypto";
import type { LoginThrottle, ThrottleLimit } from "../core/login-throttle.ts";
import type { Clock } from "../lib/clock.ts";
import { type AccountLimits, type Attempt, createAccountGuard } from "./account-guard.ts";
import { networkOf } from "../lib/client-network.ts";
import { type BudgetLimits, createFailureBudget } from "./failure-budget.ts";
import { createFailureCount, type FailureLimits } from "./failure-count.ts";
import { createFamiliarNetworks } from "./familiar-networks.ts";

export interface LoginThrottleLimits {
  /** Of one name from one network. */
  readonly pair: FailureLimits;
  /** Of one network over all names. Several people can share one address, so it allows more. */
  readonly address: FailureLimits;
  /** Of one name over all networks. */
  readonly account: AccountLimits;
  /** Of all names from all networks that they have not logged in from. */
  readonly global: BudgetLimits;
}

/**
 * Four limits, none of which lets a stranger lock somebody out who logs in from elsewhere:
 *
 * - a name and a network together, so that failures elsewhere do not count;
 * - a network alone, so that one password cannot be tried on every name;
 * - a name alone, against slow and distributed guessing: see `account-guard.ts`;
 * - everything together, against a storm from many networks over many names. It refuses strangers only, shortly, and the
 *   budget refills all the time: names on networks that they have logged in from before pass, and find the hashing
 *   threads free. To refuse everybody would make the budget itself the attacker's tool.
 *
 * A right password clears its own name on its own network only: else a guesser with an account of their own would start
 * afresh at will.
 */
export function createLoginThrottle(limits: LoginThrottleLimits, clock: Clock): LoginThrottle {
  const pairs = createFailureCount(limits.pair, clock);
  const networks = createFailureCount(limits.address, clock);
  const accounts = createAccountGuard(limits.account, clock);
  const strangers = createFailureBudget(limits.global, clock);
  const familiar = createFamiliarNetworks(clock);

  function attemptOf(username: string, network: string): Attempt {
    return {
      account: digest(username),
      pair: pairKey(username, network),
      familiar: familiar.has(username, network),
    };
  }

  return {
    line: (username, client) => pairKey(username, networkOf(client)),

    refusal(username, client) {
      const network = networkOf(client);
      const attempt = attemptOf(username, network);
      const waits: readonly (readonly [ThrottleLimit, number])[] = [
        ["pair", pairs.bannedForMs(attempt.pair)],
        ["address", networks.bannedForMs(network)],
        ["account", accounts.waitMs(attempt)],
        ["global", attempt.familiar ? 0 : strangers.waitMs()],
      ];
      const [limit, waitMs] = waits.reduce((longest, each) =>
        each[1] > longest[1] ? each : longest,
      );
      return waitMs > 0 ? { limit, retryAfter: Math.ceil(waitMs / 1000) } : undefined;
    },

    remaining(username, client) {
      const attempt = attemptOf(username, networkOf(client));
      return Math.min(pairs.remaining(attempt.pair), accounts.remaining(attempt));
    },

    failed(username, client) {
      const network = networkOf(client);
      const attempt = attemptOf(username, network);
      pairs.failed(attempt.pair);
      networks.failed(network);
      accounts.failed(attempt);
      if (!attempt.familiar) strangers.spend();
    },

    succeeded(username, client) {
      const network = networkOf(client);
      const attempt = attemptOf(username, network);
      pairs.forget(attempt.pair);
      accounts.succeeded(attempt);
      familiar.remember(username, network);
    },
  };
}

/** No address holds a NUL, so the first one ends it. */
function pairKey(username: string, network: string): string {
  return digest(`${network}\0${username}`);
}

/** Of fixed length, whatever the client calls itself. */
function digest(text: string): string {
  return hash("sha256", text, "base64url");
}
