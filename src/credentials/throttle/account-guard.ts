import type { Configuration } from "../../config/configuration.ts";
import type { AttemptEnd } from "../../core/shared-parts.ts";
import type { Clock } from "../../lib/clock.ts";

/** Counts consecutive failures by key. A count ends by itself after a time without failures. */
interface ConsecutiveFailures {
  length(key: string): number;
  /** Milliseconds until the count ends by itself; 0 if there is none. */
  endsInMs(key: string): number;
  /** @param agoMs how long ago it happened. */
  failed(key: string, agoMs?: number): void;
}

interface Streak {
  readonly length: number;
  /** Monotonic time of the last failure. */
  readonly failedAt: number;
}

/** Maximum number of keys: about 10 MB. Beyond it, the keys that failed longest ago are forgotten. */
const MAX_KEYS = 50_000;

/**
 * Counts exactly. Beyond the maximum, the oldest keys are forgotten.
 *
 * @param quietMs returns the time without failures that ends a count, in milliseconds.
 */
function createExactCounts(
  quietMs: () => number,
  clock: Clock,
): ConsecutiveFailures & { forget(key: string): void } {
  const streaks = new TwoGenerationCache<Streak>(MAX_KEYS);

  function running(key: string): Streak | undefined {
    const streak = streaks.get(key);
    return streak !== undefined && clock.monotonic() < streak.failedAt + quietMs()
      ? streak
      : undefined;
  }

  return {
    length: (key) => running(key)?.length ?? 0,

    endsInMs(key) {
      const streak = running(key);
      return streak === undefined ? 0 : streak.failedAt + quietMs() - clock.monotonic();
    },

    failed(key, agoMs = 0) {
      const { length = 0, failedAt = -Infinity } = running(key) ?? {};
      const last = Math.max(failedAt, clock.monotonic() - agoMs);
      streaks.set(key, { length: length + 1, failedAt: last });
    },

    forget: (key) => streaks.delete(key),
  };
}

/** Rows of the sketch. Each key has one cell in each row. */
const ROWS = 4;

/**
 * Counts in fixed memory. May read too high, never too low: this is a count-min sketch (Cormode and Muthukrishnan, 2005)
 * with conservative update (Estan and Varghese, 2002), in which a key reads its lowest cell. Other keys can only raise a
 * cell. So no number of them can lower a count or end it early, unlike in a table that evicts entries. A cell without
 * failures for `quietMs` counts from 0 again.
 *
 * Keys are base64url of at least 16 bytes that nobody outside can choose or predict: a keyed digest.
 *
 * @param cells per row, a power of two. Each takes 48 bytes, which the system allocates on the first write.
 */
function createFailureSketch(
  cells: number,
  quietMs: () => number,
  clock: Clock,
): ConsecutiveFailures {
  const counts = new Uint32Array(ROWS * cells);
  const failedAt = new Float64Array(ROWS * cells);

  function placesOf(key: string): readonly number[] {
    const digest = Buffer.from(key, "base64url");
    return Array.from(
      { length: ROWS },
      (_, row) => row * cells + (digest.readUInt32LE(row * 4) & (cells - 1)),
    );
  }

  function countAt(place: number): number {
    const ended = clock.monotonic() >= (failedAt[place] ?? 0) + quietMs();
    return ended ? 0 : (counts[place] ?? 0);
  }

  const lowest = (places: readonly number[]): number => Math.min(...places.map(countAt));

  return {
    length: (key) => lowest(placesOf(key)),

    endsInMs(key) {
      const places = placesOf(key);
      if (lowest(places) === 0) return 0;
      const quietSince = Math.min(...places.map((place) => failedAt[place] ?? 0));
      return quietSince + quietMs() - clock.monotonic();
    },

    failed(key, agoMs = 0) {
      const places = placesOf(key);
      const length = lowest(places) + 1;
      for (const place of places) {
        const last = countAt(place) === 0 ? -Infinity : (failedAt[place] ?? 0);
        counts[place] = Math.max(countAt(place), length);
        failedAt[place] = Math.max(last, clock.monotonic() - agoMs);
      }
    },
  };
}

/**
 * A two-generation cache (like hashlru or quick-lru). It contains at most `most` keys, and always the `most / 2` that
 * were set last. Rotating two maps makes eviction free. (Deleting the oldest key of a single map gets slower with every
 * deletion, since V8 keeps the slots: with a million names, each failed login took 300 µs.)
 */
export class TwoGenerationCache<Value> {
  #half: number;
  #young = new Map<string, Value>();
  #old = new Map<string, Value>();

  constructor(most: number) {
    this.#half = Math.ceil(most / 2);
  }

  get(key: string): Value | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }

  set(key: string, value: Value): void {
    this.#young.set(key, value);
    if (this.#young.size < this.#half) return;
    this.#old = this.#young;
    this.#young = new Map();
  }

  delete(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }

  /** Changes the maximum number of keys. The keys that were set last stay. */
  resize(most: number): void {
    this.#half = Math.ceil(most / 2);
    const old = [...this.#old].filter(([key]) => !this.#young.has(key));
    this.#old = new Map([...old, ...this.#young].slice(-this.#half));
    this.#young = new Map();
  }
}

/** `attempts` consecutive failures, from any network, put a name under guard; they end after `within` without a failure. */
type AccountLimits = Configuration["login"]["throttle"]["account"];

/** A name and a network, as digests. */
export type AccountPair = Pick<AttemptEnd, "account" | "pair">;

type Attempt = Pick<AttemptEnd, "account" | "pair" | "known">;

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
 * Bounds the guesses at one name over all networks, however slow they are. Slow guessing, and guessing from many networks, evade any limit per network and minute. NIST SP
 * 800-63B §5.2.2 allows 100 consecutive failures on one account. Locking the account then would let anybody lock users
 * out, so the name is guarded instead. Known networks (those from which the name has logged in, as the same section
 * advises) may each have up to `attempts` consecutive failures. Unknown networks get three, and are then refused until
 * a time without failures has passed. A single network therefore never gets more than `attempts`, three more guesses
 * cost another network, and the owner gets in with the right password from every network that nobody guesses from.
 *
 * Failures from unknown networks are counted in sketches, which never forget early, however many other names fail.
 * Known pairs are counted exactly, since only a right password adds one.
 *
 * @param limits returns those in force; all counts stay when they change.
 */
export function createAccountGuard(limits: () => AccountLimits, clock: Clock) {
  const quietMs = (): number => limits().within;
  const networks = new TwoGenerationCache<readonly KnownNetwork[]>(MAX_NAMES);
  const accounts = createFailureSketch(NAME_CELLS, quietMs, clock);
  const unknownPairs = createFailureSketch(UNKNOWN_PAIR_CELLS, quietMs, clock);
  const knownPairs = createExactCounts(quietMs, clock);
  const countersFor = (attempt: Attempt) => (attempt.known ? knownPairs : unknownPairs);
  const attemptsFor = (attempt: Attempt): number =>
    attempt.known ? limits().attempts : UNKNOWN_NETWORK_TRIES;

  return {
    /** Reports whether a name has logged in from a network before. */
    knows({ account, pair }: AccountPair): boolean {
      const known = networks.get(account)?.find((each) => each.pair === pair);
      return known !== undefined && clock.monotonic() < known.until;
    },

    /** Returns the milliseconds that a network must wait before it tries the name again; 0 if it need not wait. */
    waitMs(attempt: Attempt): number {
      if (accounts.length(attempt.account) < limits().attempts) return 0;
      const counters = countersFor(attempt);
      return counters.length(attempt.pair) < attemptsFor(attempt)
        ? 0
        : counters.endsInMs(attempt.pair);
    },

    /** The number of failures that the network has left for the name. */
    remaining(attempt: Attempt): number {
      const untilGuarded = limits().attempts - accounts.length(attempt.account);
      const ofPair = attemptsFor(attempt) - countersFor(attempt).length(attempt.pair);
      return Math.max(untilGuarded, ofPair);
    },

    /** @param agoMs how long ago it happened. */
    failed(attempt: Attempt, agoMs?: number): void {
      accounts.failed(attempt.account, agoMs);
      countersFor(attempt).failed(attempt.pair, agoMs);
    },

    /** The network is known to the name from now on. Failures that it had as an unknown one no longer matter. */
    succeeded({ account, pair }: AccountPair): void {
      knownPairs.forget(pair);
      const others = networks.get(account)?.filter((each) => each.pair !== pair) ?? [];
      const latest = { pair, until: clock.monotonic() + REMEMBERED_MS };
      networks.set(account, [...others, latest].slice(-NETWORKS_EACH));
    },
  };
}
