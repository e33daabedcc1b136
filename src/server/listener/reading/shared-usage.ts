import { randomInt } from "node:crypto";

/** Cells of a thread: when it wrote last, then one for each bucket. */
const BUCKETS = 4_096;
const CELLS = 1 + BUCKETS;
/** What a thread wrote longer ago does not count, in milliseconds: a busy thread writes at the end of each turn. */
const FRESH_MS = 250;
/** How long a client counts as served, in milliseconds. */
const SERVED_MS = 600_000;

/** Where the threads of a process write what each client has used, and which row is this thread's. */
export interface UsageRow {
  readonly memory: SharedArrayBuffer;
  readonly row: number;
}

/** Allocates the memory for a number of threads. The rows are followed by when each bucket was served last, and a salt. */
export function usageMemory(threads: number): SharedArrayBuffer {
  const cells = CELLS * threads + BUCKETS + 1;
  const memory = new SharedArrayBuffer(cells * Float64Array.BYTES_PER_ELEMENT);
  const all = new Float64Array(memory);
  all.fill(-Infinity, CELLS * threads);
  all[cells - 1] = randomInt(2 ** 32);
  return memory;
}

/**
 * What clients have used in the other threads, and which were served in any. A crowd that is dealt out to four threads would
 * be new to each of them, and go before others four times. Each thread writes its own row and reads the others, without
 * locks or messages.
 */
export class SharedUsage {
  readonly #cells: Float64Array<SharedArrayBuffer>;
  readonly #begins: number;
  /** Where the rows end, and the times begin. */
  readonly #end: number;
  readonly #now: () => number;

  /** @param now the time in milliseconds, which all threads share. */
  constructor({ memory, row }: UsageRow, now: () => number) {
    this.#cells = new Float64Array(memory);
    this.#begins = row * CELLS;
    this.#end = this.#cells.length - BUCKETS - 1;
    this.#now = now;
  }

  /** How many threads share what clients use. */
  get threads(): number {
    return this.#end / CELLS;
  }

  /**
   * Returns the bucket of a client (FNV-1a). Clients of one bucket count as one in other threads; the salt keeps them from
   * choosing whose.
   */
  bucketOf(client: string): number {
    let hash = this.#cells.at(-1) ?? 0;
    for (let i = 0; i < client.length; i += 1) {
      hash = Math.imul(hash ^ client.charCodeAt(i), 0x01000193);
    }
    return (hash >>> 8) % BUCKETS;
  }

  /** Writes what these clients have used in this thread, and that others have used nothing. */
  write(used: Iterable<readonly [bucket: number, units: number]>): void {
    const begins = this.#begins;
    this.#cells.fill(0, begins, begins + CELLS);
    for (const [bucket, units] of used) {
      const cell = begins + 1 + bucket;
      this.#cells[cell] = (this.#cells[cell] ?? 0) + units;
    }
    this.#cells[begins] = this.#now();
  }

  /** Notes that clients of a bucket were served a moment ago. */
  served(bucket: number): void {
    this.#cells[this.#end + bucket] = this.#now();
  }

  /** Whether a client of a bucket was served, in any thread. */
  wasServed(bucket: number): boolean {
    return this.#now() - (this.#cells[this.#end + bucket] ?? 0) <= SERVED_MS;
  }

  /** Returns the units of a bucket in all other threads that are busy. */
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
