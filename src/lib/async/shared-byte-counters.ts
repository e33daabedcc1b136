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
