import { hash, randomBytes } from "node:crypto";
import type { Configuration } from "../../config/configuration.ts";
import type { AttemptEnd, AttemptSharing } from "../../core/shared-parts.ts";
import { clientNetwork } from "../../lib/http/networks.ts";
import type { Clock } from "../../lib/clock.ts";
import type { QueueKey } from "../../lib/async/keyed-semaphore.ts";
import { type AccountPair, createAccountGuard, TwoGenerationCache } from "./account-guard.ts";

/** The limits for one name from one network, and in `address`, `account` and `global` those for several. */
export type LoginThrottleLimits = Configuration["login"]["throttle"];

type BanLimits = LoginThrottleLimits["address"];

interface Entry {
  /** Monotonic times of the latest failures, oldest first; at most `attempts`. */
  readonly failures: number[];
  bannedAt: number;
  bannedUntil: number;
}

/** Maximum number of keys: about 15 MB. Beyond it, the keys that failed longest ago are forgotten. */
const MAX_KEYS = 50_000;
/** Maximum number of times stored for all keys together, 8 bytes each. */
const MAX_TIMES = 1_000_000;
const MIN_KEYS = 1_000;

/**
 * Counts failures by key in a sliding window and bans keys that fail too often.
 *
 * @param limits returns those in force. If new ones make a running ban shorter, it ends early; none is prolonged.
 */
function createBanWindow(limits: () => BanLimits, clock: Clock) {
  const entries = new TwoGenerationCache<Entry>(mostKeys(limits()));
  const banEnds = ({ bannedAt, bannedUntil }: Entry): number =>
    Math.min(bannedUntil, bannedAt + limits().ban);

  return {
    /** Milliseconds until the ban ends; 0 if the key is not banned. */
    bannedForMs(key: string): number {
      const entry = entries.get(key);
      return entry === undefined ? 0 : Math.max(0, banEnds(entry) - clock.monotonic());
    },

    /** The number of failures within `within` that count towards a ban. */
    recent(key: string): number {
      const since = clock.monotonic() - limits().within;
      return entries.get(key)?.failures.filter((time) => time >= since).length ?? 0;
    },

    /**
     * Counts a failure. The last of `attempts` failures within `within` bans the key; a running ban is not prolonged.
     *
     * @param agoMs how long ago it happened.
     */
    failed(key: string, agoMs = 0): void {
      const { attempts, within, ban } = limits();
      const now = clock.monotonic() - agoMs;
      const entry = entries.get(key) ?? {
        failures: [],
        bannedAt: -Infinity,
        bannedUntil: -Infinity,
      };
      entries.set(key, entry);
      if (now < banEnds(entry)) return;

      while ((entry.failures[0] ?? now) + within < now) entry.failures.shift();
      entry.failures.push(now);
      // A failure reported late may be older than one already counted.
      if (agoMs > 0) entry.failures.sort((one, other) => one - other);
      if (entry.failures.length >= attempts) {
        entry.failures.length = 0;
        entry.bannedAt = now;
        entry.bannedUntil = now + ban;
      }
    },

    forget: (key: string): void => entries.delete(key),

    /** Forgets what new limits leave no room for. */
    fit: (): void => entries.resize(mostKeys(limits())),
  };
}

function mostKeys({ attempts }: BanLimits): number {
  return Math.max(MIN_KEYS, Math.min(MAX_KEYS, Math.floor(MAX_TIMES / attempts)));
}

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

/**
 * The attempts of one client with one name. The key is that of the queue in which attempts that share a count wait for
 * each other. Unknown networks have separate places.
 */
export interface ClientAttempts extends QueueKey {
  readonly group: "known" | "unknown";
  /** The number of failures that the client has left before it must wait. */
  readonly remaining: () => number;
  /** Begins an attempt, or refuses it and says how long the client must wait. */
  readonly begin: () => LoginAttempt | ThrottleRefusal;
}

/** What an attempt counts for, as digests, so that no names or addresses are kept. */
type NetworkAttempt = Omit<AttemptEnd, "failed">;
type Digests = Omit<NetworkAttempt, "known">;

/**
 * An older failure in another replica is not charged to the budget of unknown networks: it has refilled by now, or soon
 * will.
 */
const JUST_NOW_MS = 2_000;

/**
 * Slows guessing down. Four limits, none of which lets an attacker lock out a user who logs in from elsewhere:
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
export class FailureThrottle {
  readonly #pairs: ReturnType<typeof createBanWindow>;
  readonly #networks: ReturnType<typeof createBanWindow>;
  readonly #accounts: ReturnType<typeof createAccountGuard>;
  readonly #unknownBudget: ReturnType<typeof createLeakyBucket>;
  readonly #sharing: AttemptSharing;
  #limits: LoginThrottleLimits;

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
    this.#limits = limits;
    this.#pairs = createBanWindow(() => this.#limits, clock);
    this.#networks = createBanWindow(() => this.#limits.address, clock);
    this.#accounts = createAccountGuard(() => this.#limits.account, clock);
    this.#unknownBudget = createLeakyBucket(limits.global, clock);
  }

  /** Returns the attempts of a client with a name. */
  attemptsOf(username: string, client: string): ClientAttempts {
    const { digest } = this.#sharing;
    const network = clientNetwork(client);
    const digests = {
      account: digest(username),
      // Addresses contain no NUL, so the first one separates.
      pair: digest(`${network}\0${username}`),
      // No address is empty, so this differs from every pair.
      network: digest(`\0${network}`),
    };
    return {
      key: digests.pair,
      group: this.#accounts.knows(digests) ? "known" : "unknown",
      remaining: () => this.#remaining(digests),
      begin: () => this.#begin(digests, network),
    };
  }

  #remaining(digests: Digests): number {
    const ofPair = this.#limits.attempts - this.#pairs.recent(digests.pair);
    return Math.min(ofPair, this.#accounts.remaining(this.#attempt(digests)));
  }

  #begin(digests: Digests, network: string): LoginAttempt | ThrottleRefusal {
    const attempt = this.#attempt(digests);
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
    this.#limits = limits;
    this.#pairs.fit();
    this.#networks.fit();
    this.#unknownBudget.change(limits.global);
  }

  /** An earlier attempt may have made the network known meanwhile. */
  #attempt(digests: Digests): NetworkAttempt {
    return { ...digests, known: this.#accounts.knows(digests) };
  }

  #failed(attempt: NetworkAttempt, agoMs: number): void {
    this.#pairs.failed(attempt.pair, agoMs);
    this.#networks.failed(attempt.network, agoMs);
    this.#accounts.failed(attempt, agoMs);
  }

  #succeeded(pair: AccountPair): void {
    this.#pairs.forget(pair.pair);
    this.#accounts.succeeded(pair);
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

/** Allows bursts of `attempts` failures, and on average `attempts` failures in each `within`. */
type BucketLimits = LoginThrottleLimits["global"];

/**
 * Creates a leaky bucket, a budget of failures that refills steadily: it stores two numbers, whatever the load. Each
 * attempt takes its failure from the budget before it begins; otherwise concurrent attempts would all see the same budget. A network without recent failures may spend the
 * whole budget; one with many must leave half of it. The networks that cause a storm use up their half. They reach the
 * other half only as long as they find new networks.
 */
function createLeakyBucket(limits: BucketLimits, clock: Clock) {
  let { attempts } = limits;
  let msEach = limits.within / attempts;
  let spent = 0;
  let at = clock.monotonic();

  function refill(): void {
    const now = clock.monotonic();
    spent = Math.max(0, spent - (now - at) / msEach);
    at = now;
  }

  function partOf(failures: number): number {
    return Math.max(1, (attempts / 2) * (1 + 1 / (1 + failures)));
  }

  return {
    /**
     * @param failures recent failures of the requesting network.
     * @returns milliseconds until the budget allows one more failure; 0 if it does now.
     */
    waitMs(failures: number): number {
      refill();
      return Math.max(0, (spent + 1 - partOf(failures)) * msEach);
    },
    take(): void {
      refill();
      spent += 1;
    },
    /** Puts back the failure of an attempt that did not fail. */
    giveBack(): void {
      refill();
      spent = Math.max(0, spent - 1);
    },
    /** Refills at the new rate from now on. Failures already spent stay spent. */
    change(latest: BucketLimits): void {
      refill();
      ({ attempts } = latest);
      msEach = latest.within / attempts;
      // Otherwise a small budget would take hours to recover from what a large one had spent.
      spent = Math.min(spent, attempts);
    },
  };
}
