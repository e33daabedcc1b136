/**
 * In bytes per millisecond: 256 KiB/s over five seconds. A client that reads more slowly may lose its slot to a waiting
 * request. Reading is noticed late: Linux reports room only when a third of the socket's buffer is free
 * (`sk_stream_write_space`), 1.4 MB of up to 4 MB (`tcp_wmem`). That is five seconds at this rate, so a client that reads
 * steadily and at least as fast always shows progress in time.
 */
const SLOWEST = (256 * 1024) / 1000;
const OVER_MS = 5_000;

/**
 * Measures how fast a client reads its answer: a bucket of five seconds, filled by what the client reads and drained while the
 * answer waits for the client. Time spent waiting for the backend does not count.
 */
export class ReadingPace {
  #leftMs = OVER_MS;
  #counted: number;
  #waitsSince: number | undefined;

  /** @param bytes sent to the client so far. */
  constructor(bytes: number) {
    this.#counted = bytes;
  }

  /** The answer waits for the client. @returns when the client will count as slow; monotonic milliseconds, like `now`. */
  waits(bytes: number, now: number): number {
    this.goesOn(now);
    this.#leftMs = Math.min(this.#leftMs + (bytes - this.#counted) / SLOWEST, OVER_MS);
    this.#counted = bytes;
    this.#waitsSince = now;
    return now + this.#leftMs;
  }

  /** The answer no longer waits. */
  goesOn(now: number): void {
    if (this.#waitsSince !== undefined) this.#leftMs -= now - this.#waitsSince;
    this.#waitsSince = undefined;
  }
}
