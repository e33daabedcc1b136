import { createHmac, randomBytes } from "node:crypto";

/**
 * Counts by name that the threads of a process share. Each thread writes its own table and reads all of them: the counts
 * of a thread disappear with its table, and no thread waits for another.
 *
 * In each table a name has a slot in each row, chosen by a keyed hash; its count is the smallest of the sums (a count-min
 * sketch: Cormode, Muthukrishnan 2005). So memory is fixed whatever is counted, and nothing needs cleaning. Two names are
 * confused only if they share all slots: none is ever undercounted, and nobody can choose whom to collide with, since the
 * key is random.
 */
export interface SharedCounts {
  readonly memory: SharedArrayBuffer;
  readonly key: Uint8Array;
  readonly size: TableSize;
}

/** Rows of a table, up to 8, and slots in each. */
export interface TableSize {
  readonly rows: number;
  readonly slots: number;
}

/** The slots of a name: first that of the total, which precedes the rows. */
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

/** The counts as one thread sees them: it changes its own, and reads the sums. */
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

  /** @param name undefined for what counts towards the total only. */
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

  /** Change first, then read: of two threads that do so at once, the later one sees both. */
  change(slots: Slots, by: 1 | -1): void {
    for (const slot of slots) Atomics.add(this.#own, slot, by);
  }

  /** Everything that all threads count. */
  total(): number {
    return this.#sum(0);
  }

  /** The count of one name in all threads. */
  countAt([, ...slots]: Slots): number {
    return Math.min(...slots.map((slot) => this.#sum(slot)));
  }

  #sum(slot: number): number {
    let all = 0;
    for (const table of this.#tables) all += Atomics.load(table, slot);
    return all;
  }
}
