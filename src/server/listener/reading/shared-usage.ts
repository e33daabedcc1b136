import { randomInt } from "node:crypto";

/** The cells of a thread: the time of its last write, then one for each bucket. */
const BUCKETS = 4_096;
const CELLS = 1 + BUCKETS;
/** Older data of a thread does not count, in milliseconds: a busy thread writes at the end of each turn. */
const FRESH_MS = 250;
/** How long a client counts as served, in milliseconds. */
const SERVED_MS = 600_000;

/** The memory in which the threads of a process share the usage of clients, and the row of this thread. */
export interface UsageRow {
  readonly memory: SharedArrayBuffer;
  readonly row: number;
}

/** Allocates the memory: a row for each thread, then the time at which each bucket was last served, and a salt. */
export function usageMemory(threads: number): SharedArrayBuffer {
  const cells = CELLS * threads + BUCKETS + 1;
  const memory = new SharedArrayBuffer(cells * Float64Array.BYTES_PER_ELEMENT);
  const all = new Float64Array(memory);
  all.fill(-Infinity, CELLS * threads);
  all[cells - 1] = randomInt(2 ** 32);
  return memory;
}

/**
 * The usage of clients in the other threads, and which clients were served in any. Otherwise a crowd spread over four
 * threads would be new to each of them, and take precedence four times. Each thread writes its own row and reads the
 * others, without locks or messages.
 */
export class SharedUsage {
  readonly #cells: Float64Array<SharedArrayBuffer>;
  readonly #begins: number;
  /** The index at which the rows end and the times begin. */
  readonly #end: number;
  readonly #now: () => number;

  /** @param now the time in milliseconds, which all threads share. */
  constructor({ memory, row }: UsageRow, now: () => number) {
    this.#cells = new Float64Array(memory);
    this.#begins = row * CELLS;
    this.#end = this.#cells.length - BUCKETS - 1;
    this.#now = now;
  }

  /** The number of threads. */
  get threads(): number {
    return this.#end / CELLS;
  }

  /**
   * Returns the bucket of a client (FNV-1a). Clients in one bucket count as one in other threads; the salt prevents them
   * from choosing a bucket.
   */
  bucketOf(client: string): number {
    let hash = this.#cells.at(-1) ?? 0;
    for (let i = 0; i < client.length; i += 1) {
      hash = Math.imul(hash ^ client.charCodeAt(i), 0x01000193);
    }
    return (hash >>> 8) % BUCKETS;
  }

  /** Writes the usage in this thread, replacing all earlier values. */
  write(used: Iterable<readonly [bucket: number, units: number]>): void {
    const begins = this.#begins;
    this.#cells.fill(0, begins, begins + CELLS);
    for (const [bucket, units] of used) {
      const cell = begins + 1 + bucket;
      this.#cells[cell] = (this.#cells[cell] ?? 0) + units;
    }
    this.#cells[begins] = this.#now();
  }

  /** Records that a client in a bucket was just served. */
  served(bucket: number): void {
    this.#cells[this.#end + bucket] = this.#now();
  }

  /** Whether a client in a bucket was recently served, in any thread. */
  wasServed(bucket: number): boolean {
    return this.#now() - (this.#cells[this.#end + bucket] ?? 0) <= SERVED_MS;
  }

  /** Returns the units of a bucket in all other busy threads. */
  elsewhere(bucket: number): number {
    const now = this.#now();
    let units = 0;
    for (let begins = 0; begins < this.#end; begins += CELLS) {
      if (begins === this.#begins) continue;
      if (Math.abs(now - (this.#cells[begins] ?? 0)) <= FRESH_MS) {
        units += this.#cells[begins + 1 + bucket] ?? 0;
      }
    }
    return units;
  }
}
