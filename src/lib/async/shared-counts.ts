import { createHmac, randomBytes } from "node:crypto";

/** Each row holds the sum in its first cell, followed by one cell per bucket. */
const BUCKETS = 1024;
const CELLS = 1 + BUCKETS;

/** Bytes per unit of a cell. */
const UNIT_BYTES = 1024;

/** A salt for the hash, so that nobody can choose which client to collide with. */
const SALT = Math.floor(Math.random() * 2 ** 32);

/** Allocates memory for this number of threads: their zeroed rows, followed by the salt. */
export function allocateCounters(threads: number): SharedArrayBuffer {
  const memory = new SharedArrayBuffer(CELLS * threads * Int32Array.BYTES_PER_ELEMENT + 4);
  new Uint32Array(memory)[CELLS * threads] = SALT;
  return memory;
}

/**
 * Counts the bytes that wait for each client, over all threads of a process. Each thread writes its own row and reads
 * all rows, without locks or messages, so a sum may be slightly stale. Clients are hashed into buckets, so the memory
 * is fixed.
 */
export class SharedByteCounters {
  readonly memory: SharedArrayBuffer;
  readonly #cells: Int32Array;
  readonly #rows: number;
  readonly #begin: number;
  readonly #salt: number;

  /** @param row the row of the calling thread, from 0. */
  constructor(memory: SharedArrayBuffer, row: number) {
    this.memory = memory;
    this.#cells = new Int32Array(memory);
    this.#rows = (this.#cells.length - 1) / CELLS;
    this.#begin = row * CELLS;
    this.#salt = this.#cells[this.#rows * CELLS] ?? 0;
  }

  /** Returns the bucket of a client (FNV-1a). */
  bucketOf(client: string): number {
    let hash = this.#salt;
    for (let i = 0; i < client.length; i += 1) {
      hash = Math.imul(hash ^ client.charCodeAt(i), 0x01000193);
    }
    return (hash >>> 8) % BUCKETS;
  }

  /** Adds bytes to a bucket, or subtracts them if negative. Pass whole units: see `roundUpToUnit`. */
  add(bucket: number, bytes: number): void {
    const units = bytes / UNIT_BYTES;
    const cells = this.#cells;
    cells[this.#begin] = (cells[this.#begin] ?? 0) + units;
    const cell = this.#begin + 1 + bucket;
    cells[cell] = (cells[cell] ?? 0) + units;
  }

  /** The bytes of this thread. */
  get own(): number {
    return (this.#cells[this.#begin] ?? 0) * UNIT_BYTES;
  }

  /** The bytes of all threads. */
  get total(): number {
    let units = 0;
    for (let row = 0; row < this.#rows; row += 1) units += this.#cells[row * CELLS] ?? 0;
    return units * UNIT_BYTES;
  }

  /** The bytes of a bucket over all threads. */
  bytesIn(bucket: number): number {
    let units = 0;
    for (let row = 0; row < this.#rows; row += 1)
      units += this.#cells[row * CELLS + 1 + bucket] ?? 0;
    return units * UNIT_BYTES;
  }

  /** Returns the bucket with the most bytes over all threads. */
  heaviest(): number {
    let heaviest = 0;
    let most = -1;
    for (let bucket = 0; bucket < BUCKETS; bucket += 1) {
      const bytes = this.bytesIn(bucket);
      if (bytes > most) {
        most = bytes;
        heaviest = bucket;
      }
    }
    return heaviest;
  }

  /** Clears this row when its thread has ended. */
  clear(): void {
    this.#cells.fill(0, this.#begin, this.#begin + CELLS);
  }
}

/** Rounds bytes up to a whole unit. */
export function roundUpToUnit(bytes: number): number {
  return Math.ceil(bytes / UNIT_BYTES) * UNIT_BYTES;
}

const FREE = 0;
const HELD = 1;
/** Attempts before the first nap. They take some microseconds, as long as a holder usually keeps the lock. */
const SPINS = 500;
/** How long a thread waits each time for a holder that was interrupted, in milliseconds, and how many times. */
const NAP_MS = 1;
const NAPS = 5;

/**
 * Runs short work while holding the lock at this place of `locks`, so that no other thread runs work for the same
 * place. The work must neither wait nor lock again.
 *
 * The holder may have been terminated, and an event loop must not block on it: after about 5 ms, the lock is taken
 * over. The guarded data must tolerate that: the resulting error must be temporary.
 */
export function withLock<Result>(
  locks: Int32Array<SharedArrayBuffer>,
  place: number,
  work: () => Result,
): Result {
  lock(locks, place);
  try {
    return work();
  } finally {
    Atomics.store(locks, place, FREE);
  }
}

function lock(locks: Int32Array<SharedArrayBuffer>, place: number): void {
  const taken = (): boolean => Atomics.compareExchange(locks, place, FREE, HELD) === FREE;
  for (let spin = 0; spin < SPINS; spin += 1) if (taken()) return;
  for (let nap = 0; nap < NAPS; nap += 1) {
    // Nobody calls `Atomics.notify`: that would cost each holder.
    Atomics.wait(locks, place, HELD, NAP_MS);
    if (taken()) return;
  }
}

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
interface TableSize {
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
