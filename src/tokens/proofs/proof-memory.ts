import { hash, randomBytes } from "node:crypto";

/** The proofs that all threads of a process have seen. Plain data, to be posted to a thread. */
export interface ProofMemory {
  readonly memory: SharedArrayBuffer;
  readonly threads: number;
  /** Places entries, so that nobody can choose which bucket to fill. */
  readonly secret: string;
  /** What entries count their seconds from, in seconds since the epoch. */
  readonly since: number;
}

const WAYS = 64;
/** Buckets for each thread: 786,432 entries in 6 MiB of address space; unused pages take no memory. */
const BUCKETS = 3 * 2 ** 12;
/** The buckets of a share, in which few callers have room when somebody has filled those of all. */
const SHARE = 16;
/** The longest time for which a proof is remembered, in seconds. What is longer is what an entry held half a year ago. */
const LONGEST_S = 600;
const SECONDS = 2 ** 24 - 1;
/** The half of a cell with its lower 32 bits, which depends on the machine. */
const LOW = new Uint32Array(new BigUint64Array([1n]).buffer)[0] === 1 ? 0 : 1;
const HIGH = 1 - LOW;

/** @param nowMs the time, in milliseconds since the epoch. */
export function createProofMemory(threads: number, nowMs: number): ProofMemory {
  const bytes = threads * BUCKETS * WAYS * BigInt64Array.BYTES_PER_ELEMENT;
  const secret = randomBytes(32).toString("hex");
  const since = Math.floor(nowMs / 1000) - 1;
  return { memory: new SharedArrayBuffer(bytes), threads, secret, since };
}

/**
 * Remembers proofs until they end, over all threads, in buckets of 64 entries. An entry is one cell of 64 bits, which threads
 * exchange as a whole, without locks: 40 bits of a keyed digest, and the second in which it ends. Two proofs are confused once in ten
 * billion, and then one is refused. An entry that has not ended is never replaced: a bucket that is full accepts nothing.
 *
 * Two thirds of the buckets are for all. The others are divided into shares, and who finds the first full has one of these, so
 * that nobody can fill the memory for everybody.
 */
export class UsedProofs {
  readonly #secret: string;
  readonly #since: number;
  /** Whether there are other threads. */
  readonly #isShared: boolean;
  readonly #cells: BigInt64Array<SharedArrayBuffer>;
  /** The same memory in halves, which are read without creating a BigInt. */
  readonly #halves: Int32Array<SharedArrayBuffer>;

  constructor({ memory, threads, secret, since }: ProofMemory) {
    this.#secret = secret;
    this.#since = since;
    this.#isShared = threads > 1;
    this.#cells = new BigInt64Array(memory);
    this.#halves = new Int32Array(memory);
  }

  /**
   * Remembers a proof. Of threads that do so at once, at most one gets `new`.
   *
   * @param caller always the same for this proof.
   * @param untilMs when it ends by itself, and @param nowMs, in milliseconds since the epoch.
   */
  remember(name: string, caller: string, untilMs: number, nowMs: number): "new" | "used" | "full" {
    const digest = hash("sha256", this.#secret + name, "buffer");
    const own = hash("sha256", this.#secret + caller, "buffer").readUInt32LE();
    const third = this.#cells.length / WAYS / 3;
    const place = digest.readUInt32LE();
    const share = 2 * third + (own % (third / SHARE)) * SHARE;
    const buckets = [place % (2 * third), share + (place % SHARE)] as const;
    // Never 0, which is a cell that was never used.
    const mark = (digest[8] ?? 0) | 1;
    const low = digest.readInt32LE(4);
    const now = Math.floor(nowMs / 1000) - this.#since;
    const end = Math.ceil(untilMs / 1000) - this.#since;
    const entry = BigInt.asIntN(
      64,
      (BigInt(((end & SECONDS) << 8) | mark) << 32n) | BigInt(low >>> 0),
    );
    for (;;) {
      const { copy, free } = this.#search(buckets, now, mark, low, -1);
      if (copy) return "used";
      if (free === -1) return "full";
      const before = Atomics.load(this.#cells, free);
      if (isLive(Number(before >> 32n), now)) continue;
      if (Atomics.compareExchange(this.#cells, free, before, entry) !== before) continue;
      if (!this.#isShared) return "new";
      // A thread for which another entry has just ended may have put the same proof there.
      return this.#search(buckets, now, mark, low, free).copy ? "used" : "new";
    }
  }

  /** Looks for an entry in two buckets, and for the first cell that is free. @param except a cell that is left out. */
  #search(
    buckets: readonly [number, number],
    now: number,
    mark: number,
    low: number,
    except: number,
  ): { readonly copy: boolean; readonly free: number } {
    const halves = this.#halves;
    let free = -1;
    for (const bucket of buckets) {
      for (let cell = bucket * WAYS; cell < (bucket + 1) * WAYS; cell += 1) {
        const high = Atomics.load(halves, 2 * cell + HIGH);
        if (!isLive(high, now)) {
          if (free === -1) free = cell;
        } else if (
          (high & 0xff) === mark &&
          cell !== except &&
          Atomics.load(halves, 2 * cell + LOW) === low
        ) {
          return { copy: true, free };
        }
      }
    }
    return { copy: false, free };
  }
}

/** Whether an entry has not ended. @param high the upper half of its cell. */
function isLive(high: number, now: number): boolean {
  const left = ((high >>> 8) - now) & SECONDS;
  return high !== 0 && left > 0 && left <= LONGEST_S;
}
