import { hash, randomBytes } from "node:crypto";
import type { AttemptEnd, AttemptSharing } from "../../core/shared-parts.ts";
import { clientNetwork } from "../../lib/http/networks.ts";
import type { Clock } from "../../lib/clock.ts";
import {
  type AccountGuard,
  type AccountLimits,
  type Attempt,
  createAccountGuard,
} from "./account-guard.ts";
import { type BucketLimits, createLeakyBucket, type LeakyBucket } from "./leaky-bucket.ts";
import { type BanLimits, type BanWindow, createBanWindow } from "./ban-window.ts";
import { createKnownNetworks, type KnownNetworks } from "./known-networks.ts";

/** Where a login attempt comes from. It decides the order in the queue, and nothing else. */
export interface AttemptOrigin {
  /** The network that counts as one client. */
  readonly network: string;
  /** Whether this name has logged in from this network before. */
  readonly known: boolean;
  /** Recent failures of this network with any name; 0 if the network is known to the name. */
  readonly failures: number;
}

/**
 * The limit that refused an attempt: for the name from that address, the address, the name, or all unknown networks
 * together.
 */
export type ThrottleLimit = "pair" | "address" | "account" | "global";

export interface ThrottleRefusal {
  readonly limit: ThrottleLimit;
  /** Whole seconds until another attempt has a chance; at least 1. */
  readonly retryAfter: number;
}

/** A permitted attempt. Exactly one of the three methods ends it. */
export interface LoginAttempt {
  readonly origin: AttemptOrigin;
  failed(): void;
  /** Clears the failures of this client with this name, and nothing else. */
  succeeded(): void;
  /** Ends an attempt that did not learn whether the password was right. */
  abandoned(): void;
}

/** Slows guessing down. The keys ensure that failures elsewhere cannot lock the owner out. */
export interface LoginThrottle {
  /** The queue in which attempts that share a count wait for each other. Unknown networks have separate places. */
  queueFor(
    username: string,
    client: string,
  ): { readonly key: string; readonly group: "known" | "unknown" };
  /** The number of failures that this client has left with this name before it must wait. */
  remaining(username: string, client: string): number;
  /** Begins an attempt, or refuses it and says how long this client must wait. */
  begin(username: string, client: string): LoginAttempt | ThrottleRefusal;
}

export interface LoginThrottleLimits {
  /** For one name from one network. */
  readonly pair: BanLimits;
  /** For one network over all names. Several people may share an address, so it allows more. */
  readonly address: BanLimits;
  /** For one name over all networks. */
  readonly account: AccountLimits;
  /** For all names from all networks that are unknown to them. */
  readonly global: BucketLimits;
}

/** The network is also stored as a digest, so that no addresses are kept. */
interface NetworkAttempt extends Attempt {
  readonly network: string;
}

/**
 * An older failure in another replica is not charged to the budget of unknown networks: it has refilled by now, or soon
 * will.
 */
const JUST_NOW_MS = 2_000;

/**
 * Four limits, none of which lets an attacker lock out a user who logs in from elsewhere:
 *
 * - a name and a network together, so that failures elsewhere do not count;
 * - a network alone, so that one password cannot be tried on every name;
 * - a name alone, against slow and distributed guessing: see `account-guard.ts`;
 * - everything together, against a storm from many networks over many names. It refuses unknown networks only, those
 *   with many recent failures first, and only briefly, since the budget refills steadily. Known networks pass: a limit
 *   that refused everybody would serve the attacker.
 *
 * A right password clears only its own name on its own network; otherwise an attacker with an account could reset all
 * counts at will.
 */
export class FailureThrottle implements LoginThrottle {
  readonly #pairs: BanWindow;
  readonly #networks: BanWindow;
  readonly #accounts: AccountGuard;
  readonly #unknownBudget: LeakyBucket;
  readonly #knownNetworks: KnownNetworks;
  readonly #sharing: AttemptSharing;
  #attemptsOfPair: number;

  /**
   * @param sharing sends attempts to other replicas; theirs arrive in `arrived`. Without it, each replica counts
   * for itself.
   */
  constructor(
    limits: LoginThrottleLimits,
    clock: Clock,
    sharing: AttemptSharing = { digest: createDigest(), tell: () => undefined },
  ) {
    this.#sharing = sharing;
    this.#attemptsOfPair = limits.pair.attempts;
    this.#pairs = createBanWindow(limits.pair, clock);
    this.#networks = createBanWindow(limits.address, clock);
    this.#accounts = createAccountGuard(limits.account, clock);
    this.#unknownBudget = createLeakyBucket(limits.global, clock);
    this.#knownNetworks = createKnownNetworks(clock);
  }

  queueFor(username: string, client: string): ReturnType<LoginThrottle["queueFor"]> {
    const { pair, known } = this.#attempt(username, clientNetwork(client));
    return { key: pair, group: known ? "known" : "unknown" };
  }

  remaining(username: string, client: string): number {
    const attempt = this.#attempt(username, clientNetwork(client));
    const ofPair = this.#attemptsOfPair - this.#pairs.recent(attempt.pair);
    return Math.min(ofPair, this.#accounts.remaining(attempt));
  }

  begin(username: string, client: string): LoginAttempt | ThrottleRefusal {
    const network = clientNetwork(client);
    const attempt = this.#attempt(username, network);
    const { known } = attempt;
    const failures = known ? 0 : this.#networks.recent(attempt.network);
    const refused = this.#refusal(attempt, failures);
    if (refused !== undefined) return refused;

    if (!known) this.#unknownBudget.take();
    const giveBack = (): void => {
      if (!known) this.#unknownBudget.giveBack();
    };
    return {
      origin: { network, known, failures },
      failed: () => {
        this.#failed(attempt, 0);
        this.#sharing.tell({ ...attempt, failed: true });
      },
      succeeded: () => {
        giveBack();
        // Other replicas need not learn that a known network without failures has logged in again.
        const news = !known || this.#pairs.recent(attempt.pair) > 0;
        this.#succeeded(attempt);
        if (news) this.#sharing.tell({ ...attempt, failed: false });
      },
      abandoned: giveBack,
    };
  }

  /** Counts an attempt that ended in another replica. @param agoMs how long ago. */
  arrived(end: AttemptEnd, agoMs: number): void {
    if (!end.failed) {
      this.#succeeded(end);
      return;
    }
    this.#failed(end, agoMs);
    if (!end.known && agoMs < JUST_NOW_MS) this.#unknownBudget.take();
  }

  /** Applies new limits; all counts stay. */
  change(limits: LoginThrottleLimits): void {
    this.#attemptsOfPair = limits.pair.attempts;
    this.#pairs.change(limits.pair);
    this.#networks.change(limits.address);
    this.#accounts.change(limits.account);
    this.#unknownBudget.change(limits.global);
  }

  #attempt(username: string, network: string): NetworkAttempt {
    const { digest } = this.#sharing;
    const account = digest(username);
    // Addresses contain no NUL, so the first one separates.
    const pair = digest(`${network}\0${username}`);
    // No address is empty, so this differs from every pair.
    const key = digest(`\0${network}`);
    return { account, pair, network: key, known: this.#knownNetworks.has(account, pair) };
  }

  #failed(attempt: NetworkAttempt, agoMs: number): void {
    this.#pairs.failed(attempt.pair, agoMs);
    this.#networks.failed(attempt.network, agoMs);
    this.#accounts.failed(attempt, agoMs);
  }

  #succeeded(attempt: NetworkAttempt): void {
    this.#pairs.forget(attempt.pair);
    this.#accounts.succeeded(attempt);
    this.#knownNetworks.remember(attempt.account, attempt.pair);
  }

  #refusal(attempt: NetworkAttempt, failures: number): ThrottleRefusal | undefined {
    const waits: readonly (readonly [ThrottleLimit, number])[] = [
      ["pair", this.#pairs.bannedForMs(attempt.pair)],
      ["address", this.#networks.bannedForMs(attempt.network)],
      ["account", this.#accounts.waitMs(attempt)],
      ["global", attempt.known ? 0 : this.#unknownBudget.waitMs(failures)],
    ];
    const [limit, waitMs] = waits.reduce((longest, each) =>
      each[1] > longest[1] ? each : longest,
    );
    return waitMs > 0 ? { limit, retryAfter: Math.ceil(waitMs / 1000) } : undefined;
  }
}

/**
 * Returns a function that makes digests of fixed length. They never leave the process, so a secret prefix suffices as
 * the key.
 */
function createDigest(): (text: string) => string {
  const secret = randomBytes(32).toString("base64url");
  return (text) => hash("sha256", secret + text, "base64url");
}
