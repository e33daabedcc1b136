/** Cells of a thread: the bytes of its waiting lines, and the number of lost lines not yet collected. */
const CELLS = 2;

/** Allocates the shared memory for a number of threads; all zero. */
export function logBacklogMemory(threads: number): SharedArrayBuffer {
  return new SharedArrayBuffer(CELLS * threads * Int32Array.BYTES_PER_ELEMENT);
}

/**
 * Bounds the bytes of log lines that wait for the main thread, over all threads of the process: messages wait in the
 * receiving port without a limit of their own. A thread adds to its cells when it posts a line, and the main thread
 * subtracts when it has received it. The bound holds even if one of them stalls.
 */
export class LogBacklog {
  readonly #cells: Int32Array<SharedArrayBuffer>;
  readonly #waiting: number;
  readonly #lost: number;
  readonly #maxWaiting: number;

  /**
   * @param row index of the thread whose lines these are, from 0.
   * @param maxWaiting maximum number of bytes that wait for the main thread, over all threads.
   */
  constructor(memory: SharedArrayBuffer, row: number, maxWaiting: number) {
    this.#cells = new Int32Array(memory);
    this.#waiting = row * CELLS;
    this.#lost = row * CELLS + 1;
    this.#maxWaiting = maxWaiting;
  }

  /**
   * Called by the thread.
   *
   * @returns whether a line of `bytes` bytes may wait; if not, it counts as lost.
   */
  add(bytes: number): boolean {
    // Adds first and checks afterwards: if two threads do so at once, the later one sees both.
    Atomics.add(this.#cells, this.#waiting, bytes);
    if (this.#total() <= this.#maxWaiting) return true;
    Atomics.sub(this.#cells, this.#waiting, bytes);
    Atomics.add(this.#cells, this.#lost, 1);
    return false;
  }

  /** Called by the main thread when it has received lines of `bytes` bytes. */
  received(bytes: number): void {
    Atomics.sub(this.#cells, this.#waiting, bytes);
  }

  /** Called by the main thread: returns the number of lines lost since the last call. */
  collectLost(): number {
    return Atomics.exchange(this.#cells, this.#lost, 0);
  }

  /** Called by the main thread when the thread has terminated and none of its lines wait any more. */
  clear(): void {
    Atomics.store(this.#cells, this.#waiting, 0);
  }

  #total(): number {
    let bytes = 0;
    for (let cell = 0; cell < this.#cells.length; cell += CELLS) {
      bytes += Atomics.load(this.#cells, cell);
    }
    return bytes;
  }
}
