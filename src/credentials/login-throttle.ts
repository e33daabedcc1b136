import { hash } from "node:crypto";
import type { LoginThrottle, ThrottleLimit, ThrottleRefusal } from "../core/login-throttle.ts";
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

export interface ChangeableThrottle extends LoginThrottle {
  /** Goes on with everything that was counted, by other limits. */
  change(limits: LoginThrottleLimits): void;
}

/**
 * Four limits, none of which lets a stranger lock somebody out who logs in from elsewhere:
 *
 * - a name and a network together, so that failures elsewhere do not count;
 * - a network alone, so that one password cannot be tried on every name;
 * - a name alone, against slow and distributed guessing: see `account-guard.ts`;
 * - everything together, against a storm from many networks over many names. It refuses strangers only, those first that
 *   come from where much has failed, shortly, and the budget refills all the time: names on networks that they have
 *   logged in from before pass. To refuse everybody would make the budget itself the attacker's tool.
 *
 * A right password clears its own name on its own network only: else a guesser with an account of their own would start
 * afresh at will.
 */
export function createLoginThrottle(limits: LoginThrottleLimits, clock: Clock): ChangeableThrottle {
  let attemptsOfPair = limits.pair.attempts;
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

  function refusal(
    attempt: Attempt,
    network: string,
    failures: number,
  ): ThrottleRefusal | undefined {
    const waits: readonly (readonly [ThrottleLimit, number])[] = [
      ["pair", pairs.bannedForMs(attempt.pair)],
      ["address", networks.bannedForMs(network)],
      ["account", accounts.waitMs(attempt)],
      ["global", attempt.familiar ? 0 : strangers.waitMs(failures)],
    ];
    const [limit, waitMs] = waits.reduce((longest, each) =>
      each[1] > longest[1] ? each : longest,
    );
    return waitMs > 0 ? { limit, retryAfter: Math.ceil(waitMs / 1000) } : undefined;
  }

  return {
    line(username, client) {
      const { pair, familiar: known } = attemptOf(username, networkOf(client));
      return { key: pair, group: known ? "familiar" : "strange" };
    },

    remaining(username, client) {
      const attempt = attemptOf(username, networkOf(client));
      const ofPair = attemptsOfPair - pairs.recent(attempt.pair);
      return Math.min(ofPair, accounts.remaining(attempt));
    },

    begin(username, client) {
      const network = networkOf(client);
      const attempt = attemptOf(username, network);
      const failures = attempt.familiar ? 0 : networks.recent(network);
      const refused = refusal(attempt, network, failures);
      if (refused !== undefined) return refused;

      if (!attempt.familiar) strangers.take();
      const giveBack = (): void => {
        if (!attempt.familiar) strangers.giveBack();
      };
      return {
        origin: { network, familiar: attempt.familiar, failures },
        failed() {
          pairs.failed(attempt.pair);
          networks.failed(network);
          accounts.failed(attempt);
        },
        succeeded() {
          giveBack();
          pairs.forget(attempt.pair);
          accounts.succeeded(attempt);
          familiar.remember(username, network);
        },
        abandoned: giveBack,
      };
    },

    change(latest) {
      attemptsOfPair = latest.pair.attempts;
      pairs.change(latest.pair);
      networks.change(latest.address);
      accounts.change(latest.account);
      strangers.change(latest.global);
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
