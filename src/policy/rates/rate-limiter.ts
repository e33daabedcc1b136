import { hash, randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { SettleRates } from "../../core/shared-parts.ts";
import type { Clock } from "../../lib/clock.ts";
import { pacedTask } from "../../lib/async/paced-task.ts";
import { withLock } from "../../lib/async/shared-counts.ts";

/** About 15 MB. Beyond it, the least recently active keys get a full burst again. */
const MAX_KEYS = 50_000;
/** The tolerance for rounding errors, in milliseconds. */
const ROUNDING_MS = 1e-6;

/**
 * The theoretical arrival time of each key of a rate limit: the time at which all requests so far would be due if
 * they arrived at a constant rate (ITU-T I.371, annex A). Expressed as milliseconds ahead of now; 0 for a key that
 * owes nothing.
 */
export interface ArrivalTimes {
  /** Advances the time by `costMs`, unless it is more than `mostMs` ahead. @returns how far ahead it was before. */
  take(key: string, costMs: number, mostMs: number): number;
  /** Advances the time until it is at least this far ahead. */
  raise(key: string, aheadMs: number): void;
}

/** Creates the times of one limit in one thread. */
export function localArrivalTimes(clock: Pick<Clock, "monotonic">): ArrivalTimes {
  const times = new LRUCache<string, number>({ max: MAX_KEYS });
  return {
    take(key, costMs, mostMs) {
      const now = clock.monotonic();
      const aheadMs = Math.max(0, (times.get(key) ?? now) - now);
      if (aheadMs <= mostMs + ROUNDING_MS) times.set(key, now + aheadMs + costMs);
      return aheadMs;
    },
    raise(key, aheadMs) {
      const time = clock.monotonic() + aheadMs;
      if (time > (times.get(key) ?? 0)) times.set(key, time);
    },
  };
}

/** How often spending is settled with other replicas, in milliseconds. */
const SETTLE_EVERY_MS = 100;
/** The maximum number of keys that wait for settlement. The spending of further keys counts only in this process. */
const MOST_KEYS = 50_000;

/**
 * Settles local spending with other replicas, at most ten times a second. Requests do not wait for it.
 *
 * @param limit the name of the limit.
 * @param costMs the cost of one request in the limit's time, in milliseconds.
 * @param settled receives the milliseconds until the spending of all replicas on a key is paid back.
 * @returns a function that counts a request of a key.
 */
function settleSpending(
  settle: SettleRates,
  limit: string,
  costMs: number,
  settled: (key: string, behindMs: number) => void,
): (key: string) => void {
  /** Requests since the last settlement, by key. */
  let since = new Map<string, number>();
  const requestRun = pacedTask(SETTLE_EVERY_MS, async () => {
    const spent = [...since];
    since = new Map();
    const spendings = spent.map(([key, requests]) => {
      return { key: `${limit}\0${key}`, costMs: requests * costMs };
    });
    // Spending that cannot be settled counts only here.
    const behind = await settle(spendings).catch(() => undefined);
    for (const [place, [key]] of spent.entries()) {
      const behindMs = behind?.[place];
      if (behindMs === undefined || !(behindMs >= 0)) continue;
      settled(key, behindMs + (since.get(key) ?? 0) * costMs);
    }
    return since.size > 0;
  });
  return (key) => {
    const spent = since.get(key);
    if (spent === undefined && since.size >= MOST_KEYS) return;
    since.set(key, (spent ?? 0) + 1);
    requestRun();
  };
}

/**
 * The arrival times of all rate limits, shared by all threads of a process. It is a table of buckets with eight
 * entries each; an entry contains a digest of its key and its time. The digest is keyed, so nobody can choose which
 * key to collide with. Two keys of a limit are confused if they share a bucket and 32 further bits.
 *
 * An entry whose time has passed counts as empty. If a bucket has no empty entry, a new key evicts the entry with the
 * earliest time among those of the limit with the most entries there, so that many callers of one limit do not evict
 * those of another.
 */
export interface SharedTimes {
  readonly memory: SharedArrayBuffer;
  readonly secret: string;
}

/** In total 131,072 entries in 2 MiB of address space; unused pages take no memory. */
const BUCKETS = 2 ** 14;
const WAYS = 8;
const LOCK_BYTES = BUCKETS * Int32Array.BYTES_PER_ELEMENT;
const TIME_BYTES = BUCKETS * WAYS * Float64Array.BYTES_PER_ELEMENT;
const MARK_BYTES = BUCKETS * WAYS * 2 * Uint32Array.BYTES_PER_ELEMENT;
/** The number of digests that a thread caches for each limit. */
const REMEMBERED = 10_000;

/** Scratch memory that converts a time to its bits and back. */
const TIME = new Float64Array(1);
const BITS = new BigInt64Array(TIME.buffer);

/** The bucket of a key, and its mark, which identifies it there. */
interface Place {
  readonly bucket: number;
  readonly mark: number;
}

export function createSharedTimes(): SharedTimes {
  const memory = new SharedArrayBuffer(LOCK_BYTES + TIME_BYTES + MARK_BYTES);
  return { memory, secret: randomBytes(32).toString("hex") };
}

/**
 * Attaches a thread.
 *
 * @param now returns a monotonic time in milliseconds that is the same in all threads.
 * @returns a function that returns the arrival times of a limit, given its name.
 */
export function attachSharedTimes(
  { memory, secret }: SharedTimes,
  now: () => number,
): (limit: string) => ArrivalTimes {
  const table = new Table(memory);
  const digestOf = (...names: string[]): Buffer =>
    hash("sha256", [secret, ...names].join("\0\0"), "buffer");
  return (limit) => {
    const limitMark = digestOf(limit).readUInt32LE();
    const places = new LRUCache<string, Place>({ max: REMEMBERED });
    const placeOf = (key: string): Place => {
      let place = places.get(key);
      if (place === undefined) {
        const digest = digestOf(limit, key);
        place = { bucket: digest.readUInt32LE() % BUCKETS, mark: digest.readUInt32LE(4) };
        places.set(key, place);
      }
      return place;
    };
    /** Sets how far the time of a key is ahead; if `next` returns undefined, leaves it. @returns how far it was before. */
    const change = (key: string, next: (aheadMs: number) => number | undefined): number => {
      const { bucket, mark } = placeOf(key);
      return withLock(table.locks, bucket, () => {
        for (;;) {
          const time = now();
          const found = table.find(bucket, limitMark, mark);
          const entry = found ?? table.leastMissed(bucket, time);
          const before = table.read(entry);
          const aheadMs = found === undefined ? 0 : Math.max(0, before.time - time);
          const nextMs = next(aheadMs);
          if (nextMs === undefined) return aheadMs;
          // This fails if another thread took over the lock, because this one was interrupted for long. Then try again.
          if (!table.replace(entry, before.bits, time + nextMs)) continue;
          if (found === undefined) table.name(entry, limitMark, mark);
          return aheadMs;
        }
      });
    };
    return {
      take: (key, costMs, mostMs) =>
        change(key, (aheadMs) => (aheadMs > mostMs + ROUNDING_MS ? undefined : aheadMs + costMs)),
      raise: (key, aheadMs) =>
        void change(key, (before) => (aheadMs > before ? aheadMs : undefined)),
    };
  };
}

/** The entries of all buckets. Hold the lock of a bucket to access its entries. */
class Table {
  readonly locks: Int32Array<SharedArrayBuffer>;
  readonly #times: Float64Array;
  /** The same memory as integers, which support compare-and-exchange. */
  readonly #bits: BigInt64Array;
  /** Two marks for each entry: that of its limit, and that of its key. */
  readonly #marks: Uint32Array;

  constructor(memory: SharedArrayBuffer) {
    this.locks = new Int32Array(memory, 0, BUCKETS);
    this.#times = new Float64Array(memory, LOCK_BYTES, BUCKETS * WAYS);
    this.#bits = new BigInt64Array(memory, LOCK_BYTES, BUCKETS * WAYS);
    this.#marks = new Uint32Array(memory, LOCK_BYTES + TIME_BYTES, BUCKETS * WAYS * 2);
  }

  find(bucket: number, limit: number, mark: number): number | undefined {
    const marks = this.#marks;
    for (let entry = bucket * WAYS; entry < (bucket + 1) * WAYS; entry += 1) {
      if (marks[2 * entry] === limit && marks[2 * entry + 1] === mark) return entry;
    }
    return undefined;
  }

  timeAt(entry: number): number {
    return this.#times[entry] ?? 0;
  }

  /** Returns the time of an entry, and its bits for `replace`. */
  read(entry: number): { readonly bits: bigint; readonly time: number } {
    const bits = Atomics.load(this.#bits, entry);
    BITS[0] = bits;
    return { bits, time: TIME[0] ?? 0 };
  }

  /** Replaces the time of an entry, unless it has changed since `before`. @returns whether it did. */
  replace(entry: number, before: bigint, time: number): boolean {
    TIME[0] = time;
    return Atomics.compareExchange(this.#bits, entry, before, BITS[0] ?? 0n) === before;
  }

  name(entry: number, limit: number, mark: number): void {
    this.#marks[2 * entry] = limit;
    this.#marks[2 * entry + 1] = mark;
  }

  /** Returns the entry of a bucket to reuse for a new key. */
  leastMissed(bucket: number, now: number): number {
    const entries = Array.from({ length: WAYS }, (_, way) => bucket * WAYS + way);
    const paid = entries.find((entry) => this.timeAt(entry) <= now);
    if (paid !== undefined) return paid;
    const limitOf = (entry: number): number => this.#marks[2 * entry] ?? 0;
    const crowd = (entry: number): number =>
      entries.filter((other) => limitOf(other) === limitOf(entry)).length;
    return entries.reduce((least, entry) => {
      const more = crowd(entry) - crowd(least);
      return more > 0 || (more === 0 && this.timeAt(entry) < this.timeAt(least)) ? entry : least;
    });
  }
}

/** Maximum length of a key. A longer one is replaced by its hash: a subject can be as long as a token. */
const LONGEST_KEY = 128;
/** No key waits longer than the time of this many bursts, whatever the server says that other replicas have spent. */
const MOST_BURSTS = 10;

/** The verdict of a rate limit on one request. */
export interface RateVerdict {
  readonly allowed: boolean;
  /** The number of further requests that may follow immediately. */
  readonly remaining: number;
  /** In milliseconds: after a refusal until the next request is allowed, else until the full burst is available. */
  readonly waitMs: number;
}

type RateSettings = Pick<RateLimit, "by" | "requests" | "withinMs" | "burst">;

/**
 * The rate limit that a route sets for each caller: the generic cell rate algorithm (ITU-T I.371, annex A). It keeps one number
 * for each key: the time at which all requests so far would be due if they arrived at a constant rate. A fixed window would
 * allow two bursts in succession.
 *
 * rate-limiter-flexible was tried first. Its counts in memory are unbounded (a million addresses took 495 MB and a
 * million timers; here 6 MB and none), and it depends on the wall clock.
 */
export class RateLimit {
  /**
   * The key: the subject of the token (without one, on a route where it is optional, the address), or the address of the
   * client (IPv6: its /64). With `address`, requests are counted before the token is examined, so that requests with invalid
   * tokens count, too.
   */
  readonly by: "subject" | "address";
  /** Sustained rate: requests allowed per `withinMs`. `burst` is how many may arrive at once. */
  readonly requests: number;
  readonly withinMs: number;
  readonly burst: number;
  readonly #times: ArrivalTimes;
  readonly #intervalMs: number;
  readonly #burstMs: number;
  readonly #spend: ((key: string) => void) | undefined;

  /**
   * @param route threads and replicas share counts if the name of the route and the limit are the same.
   * @param timesOf returns the arrival times of the keys of a limit, in this thread or over all threads of the process.
   * @param settle adds up the spending of all replicas. Without it, this replica counts on its own.
   */
  constructor(
    route: string,
    { by, requests, withinMs, burst }: RateSettings,
    timesOf: (limit: string) => ArrivalTimes,
    settle?: SettleRates,
  ) {
    const limit = [route, by, requests, withinMs, burst].join("\0");
    const times = timesOf(limit);
    this.by = by;
    this.requests = requests;
    this.withinMs = withinMs;
    this.burst = burst;
    this.#times = times;
    const intervalMs = withinMs / requests;
    this.#intervalMs = intervalMs;
    this.#burstMs = (burst - 1) * intervalMs;
    const mostMs = MOST_BURSTS * burst * intervalMs;
    this.#spend =
      settle &&
      settleSpending(settle, limit, intervalMs, (key, aheadMs) =>
        times.raise(key, Math.min(aheadMs, mostMs)),
      );
  }

  /** Counts a request of a caller, unless the limit refuses it. */
  take(caller: string): RateVerdict {
    const intervalMs = this.#intervalMs;
    const key = caller.length > LONGEST_KEY ? hash("sha256", caller, "base64url") : caller;
    const aheadMs = this.#times.take(key, intervalMs, this.#burstMs);
    const waitMs = aheadMs - this.#burstMs;
    if (waitMs > ROUNDING_MS) return { allowed: false, remaining: 0, waitMs };
    this.#spend?.(key);
    const remaining = Math.floor(this.burst - 1 - aheadMs / intervalMs + ROUNDING_MS);
    return { allowed: true, remaining: Math.max(0, remaining), waitMs: aheadMs + intervalMs };
  }
}
