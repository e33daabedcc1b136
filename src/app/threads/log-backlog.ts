import type { LogSink } from "../../observe/log/log-sink.ts";

/** Number of cells per thread: the bytes of its waiting lines, and the number of lost lines not yet collected. */
const CELLS = 2;

/** Allocates the shared memory for a number of threads, filled with zeros. */
export function logBacklogMemory(threads: number): SharedArrayBuffer {
  return new SharedArrayBuffer(CELLS * threads * Int32Array.BYTES_PER_ELEMENT);
}

/**
 * Limits the bytes of log lines that wait for the main thread, in all threads together: a message port has no limit of
 * its own. A thread adds to its cell when it posts a line, and the main thread subtracts when it has received the line.
 * The limit holds even if one of them stalls.
 */
export class LogBacklog {
  readonly #cells: Int32Array<SharedArrayBuffer>;
  readonly #waiting: number;
  readonly #lost: number;
  readonly #maxWaiting: number;

  /**
   * @param row index of the thread that writes the lines, from 0.
   * @param maxWaiting maximum number of bytes that wait for the main thread, in all threads together.
   */
  constructor(memory: SharedArrayBuffer, row: number, maxWaiting: number) {
    this.#cells = new Int32Array(memory);
    this.#waiting = row * CELLS;
    this.#lost = row * CELLS + 1;
    this.#maxWaiting = maxWaiting;
  }

  /** Called by the thread. @returns whether a line of `bytes` bytes may wait; if not, it counts as lost. */
  add(bytes: number): boolean {
    // Adds first and checks afterwards: if two threads do so at the same time, the later one sees both values.
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

  /** Called by the main thread. Returns the number of lines lost since the last call. */
  collectLost(): number {
    return Atomics.exchange(this.#cells, this.#lost, 0);
  }

  /** Called by the main thread when the thread has terminated and none of its lines are waiting. */
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

/** How long log lines wait to be posted in a batch, in milliseconds. */
const BATCH_DELAY_MS = 20;

/**
 * Returns the log sink of a traffic thread. The main thread writes the lines, so that lines of two threads never mix.
 * Lines for which `backlog` has no room are lost, and counted there.
 */
export function postedSink(
  post: (lines: readonly string[], bytes: number) => void,
  backlog: LogBacklog,
): LogSink {
  let lines: string[] = [];
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (lines.length > 0) post(lines, bytes);
    lines = [];
    bytes = 0;
  };
  const add = (line: string, length: number): void => {
    lines.push(line);
    bytes += length;
    timer ??= setTimeout(flush, BATCH_DELAY_MS);
  };
  return {
    write(line) {
      const length = Buffer.byteLength(line);
      if (backlog.add(length)) add(line, length);
    },
    writeBytes(line) {
      if (backlog.add(line.length)) add(line.toString(), line.length);
    },
    flush,
    drain: async () => flush(),
    // The main thread counts the lines lost on the way to it.
    countLost: () => undefined,
    dropped: () => 0,
    losing: () => undefined,
  };
}
