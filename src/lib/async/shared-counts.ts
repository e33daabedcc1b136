import { createHmac, randomBytes } from "node:crypto";

/**
 * Counts by name, shared by the threads of a process. Each thread writes its own table and reads all of them. So no
 * thread waits for another, and clearing the table of a thread that ended removes its counts.
 *
 * In each table, a keyed hash gives a name one slot per row. The count of a name is the smallest of the sums of its
 * slots over all threads (a count-min sketch: Cormode, Muthukrishnan 2005). So memory is fixed whatever is counted,
 * and nothing needs cleaning. Collisions can make a count too high, never too low. Nobody can choose which name to
 * collide with, because the key is random.
 */
export interface SharedCounts {
  readonly memory: SharedArrayBuffer;
  readonly key: Uint8Array;
  readonly size: TableSize;
}

/** The rows of a table, at most 8, and the slots of each row. */
export interface TableSize {
  readonly rows: number;
  readonly slots: number;
}

/** The slots of a name. The first one is the slot of the total, which precedes the rows. */
export type Slots = readonly number[];

export function createSharedCounts(threads: number, size: TableSize): SharedCounts {
  const memory = new SharedArrayBuffer(threads * bytesOf(size));
  return { memory, key: randomBytes(32), size };
}

function bytesOf({ rows, slots }: TableSize): number {
  return (1 + rows * slots) * Int32Array.BYTES_PER_ELEMENT;
}

function tableOf({ memory, size }: SharedCounts, thread: number): Int32Array<SharedArrayBuffer> {
  const bytes = bytesOf(size);
  return new Int32Array(memory, thread * bytes, bytes / Int32Array.BYTES_PER_ELEMENT);
}

/** Clears the counts of a thread that has ended. */
export function releaseThread(shared: SharedCounts, thread: number): void {
  tableOf(shared, thread).fill(0);
}

/** The counts as one thread sees them: it changes its own table and reads the sums over all tables. */
export class ThreadCounts {
  readonly #shared: SharedCounts;
  readonly #tables: readonly Int32Array<SharedArrayBuffer>[];
  readonly #own: Int32Array<SharedArrayBuffer>;

  constructor(shared: SharedCounts, thread: number) {
    const threads = shared.memory.byteLength / bytesOf(shared.size);
    this.#shared = shared;
    this.#tables = Array.from({ length: threads }, (_, each) => tableOf(shared, each));
    this.#own = tableOf(shared, thread);
  }

  /** Returns the slots of a name. @param name undefined for something that counts towards the total only. */
  slotsOf(name: string | undefined): Slots {
    if (name === undefined) return [0];
    const { key, size } = this.#shared;
    const { rows, slots } = size;
    const digest = createHmac("sha256", key).update(name).digest();
    const places = Array.from(
      { length: rows },
      (_, row) => 1 + row * slots + (digest.readUInt32LE(4 * row) % slots),
    );
    return [0, ...places];
  }

  /** Adds to all of these slots. Change first, then read: if two threads do so concurrently, at least one sees both. */
  change(slots: Slots, by: 1 | -1): void {
    for (const slot of slots) Atomics.add(this.#own, slot, by);
  }

  /** The total over all threads. */
  total(): number {
    return this.#sum(0);
  }

  /** The count of one name over all threads. */
  countAt([, ...slots]: Slots): number {
    return Math.min(...slots.map((slot) => this.#sum(slot)));
  }

  #sum(slot: number): number {
    let all = 0;
    for (const table of this.#tables) all += Atomics.load(table, slot);
    return all;
  }
}
