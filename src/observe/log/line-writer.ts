import { writeSync } from "node:fs";
import type { Clock } from "../../lib/clock.ts";
import { systemCode } from "../../lib/text/error-code.ts";
import type { LineBytes } from "./line-bytes.ts";

export interface LineWriterOptions {
  /** Pipes and sockets must be non-blocking. */
  readonly fd: number;
  /** The maximum number of bytes that may wait for the reader; further lines are dropped. */
  readonly maxWaiting: number;
  /** For the time of the lines that report how many were dropped. */
  readonly clock: Clock;
  /** Converts each line for people; undefined if lines are written as they are. */
  readonly render: ((line: string) => string) | undefined;
}

interface Batch {
  /** The number of lines lost if the batch cannot be written. */
  readonly lines: number;
  /** Whether it reports dropped lines, which have already been counted. */
  readonly reportsDropped: boolean;
  readonly length: number;
  /** Contains the lines; reused once they are written. */
  readonly buffer: Buffer;
  rest: Buffer;
}

/** Bytes per write: as much as Docker's log copier reads at once; it fits into an empty pipe. */
const BATCH_BYTES = 16 * 1024;
/** Bytes of a buffer: room for one batch and the line that fills it. */
const BUFFER_BYTES = 2 * BATCH_BYTES;
const LINE_END = 0x0a;
/** How long the first line of a batch waits for others, in milliseconds. */
const BATCH_DELAY_MS = 20;
/** Delay before writing to a full pipe again, in milliseconds. */
const RETRY_DELAY_MS = 5;

/**
 * Writes lines to a file descriptor in batches, synchronously and without blocking: a full pipe returns EAGAIN, and
 * the write is retried later. Asynchronous writes to a blocking pipe, like those of pino's own destination, occupy a
 * thread of libuv's pool until the reader reads. The process waits for that thread at exit, so with a stalled reader
 * it never exited (tested on Node 26 with sonic-boom 4.2 and with `fs.write`). If the reader is gone, lines are
 * discarded.
 */
export class LineWriter {
  readonly #options: LineWriterOptions;
  #open: Buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  #used = 0;
  #lines = 0;
  #spare: Buffer | undefined;
  readonly #queue: Batch[] = [];
  #timer: NodeJS.Timeout | undefined;
  #blocked = false;
  #waiting = 0;
  /** Lost lines that have not been reported yet. */
  #dropped = 0;
  #lost = 0;
  #gone = false;
  #idle: PromiseWithResolvers<void> | undefined;

  constructor(options: LineWriterOptions) {
    this.#options = options;
  }

  /** The number of lines lost so far, reported or not. */
  dropped(): number {
    return this.#lost;
  }

  /** Adds one line, without its end. */
  write(line: string): void {
    const text = this.#options.render?.(line) ?? line;
    const length = Buffer.byteLength(text);
    if (!this.#makeRoom(length)) return;
    this.#open.write(text, this.#used);
    this.#added(length);
  }

  /** Adds one line, without its end. Copies its bytes. */
  writeBytes(line: LineBytes): void {
    if (this.#options.render !== undefined) this.write(line.toString());
    else if (this.#makeRoom(line.length)) {
      line.copyTo(this.#open, this.#used);
      this.#added(line.length);
    }
  }

  /** Counts lines that were lost before they reached this writer, and reports them if there is a reader. */
  countLost(lines: number): void {
    this.#lost += lines;
    if (this.#gone) return;
    this.#dropped += lines;
    this.#sendIn(BATCH_DELAY_MS);
  }

  /** Writes as much as the reader accepts. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#blocked = false;
    this.#cutBatch();
    this.#writeQueue();
    if (this.#dropped > 0 && this.#waiting < this.#options.maxWaiting / 2) this.#reportDropped();
    if (this.#queue.length === 0) this.#idle?.resolve();
    else this.#sendIn(RETRY_DELAY_MS);
  }

  /** Resolves when everything is written, or after `timeoutMs` milliseconds. */
  async drain(timeoutMs: number): Promise<void> {
    this.flush();
    if (this.#queue.length === 0) return;
    this.#idle ??= Promise.withResolvers<void>();
    const timer = setTimeout(this.#idle.resolve, timeoutMs);
    await this.#idle.promise;
    clearTimeout(timer);
    this.#idle = undefined;
  }

  #sendIn(delay: number): void {
    this.#timer ??= setTimeout(() => this.flush(), delay).unref();
  }

  /** Queues the line that reports how many were dropped. */
  #reportDropped(): void {
    const time = new Date(this.#options.clock.now()).toISOString();
    const line = `{"time":"${time}","level":"warn","msg":"log lines were dropped","dropped":${this.#dropped},"see":"docs/runbook.md#log-lines-were-dropped"}`;
    const buffer = Buffer.from(`${this.#options.render?.(line) ?? line}\n`);
    const { length } = buffer;
    this.#queue.push({ lines: this.#dropped, reportsDropped: true, length, buffer, rest: buffer });
    this.#waiting += length;
    this.#dropped = 0;
    this.#writeQueue();
  }

  /**
   * Makes room for a line of `length` bytes and its end. If it may not wait, counts it as lost, and returns false; if
   * there is a reader, the next report includes it.
   */
  #makeRoom(length: number): boolean {
    if (this.#gone || this.#waiting + length >= this.#options.maxWaiting) {
      this.#lost++;
      if (!this.#gone) this.#dropped++;
      return false;
    }
    if (this.#used + length >= this.#open.length) {
      this.#cutBatch();
      if (length >= this.#open.length) this.#open = Buffer.allocUnsafe(length + 1);
    }
    return true;
  }

  /** Ends a line whose bytes were added, and makes sure that it is written soon. */
  #added(length: number): void {
    this.#used += length;
    this.#open[this.#used++] = LINE_END;
    this.#lines++;
    this.#waiting += length + 1;
    if (this.#used < BATCH_BYTES) this.#sendIn(BATCH_DELAY_MS);
    else if (this.#blocked) this.#cutBatch();
    else this.flush();
  }

  #cutBatch(): void {
    if (this.#used === 0) return;
    const buffer = this.#open;
    const rest = buffer.subarray(0, this.#used);
    const { length } = rest;
    this.#queue.push({ lines: this.#lines, reportsDropped: false, length, buffer, rest });
    this.#open = this.#spare ?? Buffer.allocUnsafe(BUFFER_BYTES);
    this.#spare = undefined;
    this.#used = 0;
    this.#lines = 0;
  }

  #writeQueue(): void {
    while (!this.#blocked) {
      const [batch] = this.#queue;
      if (batch === undefined) return;
      try {
        batch.rest = batch.rest.subarray(writeSync(this.#options.fd, batch.rest));
      } catch (error) {
        this.#failed(systemCode(error), batch);
      }
      if (batch.rest.length === 0) {
        this.#queue.shift();
        this.#waiting -= batch.length;
        if (batch.buffer.length === BUFFER_BYTES) this.#spare = batch.buffer;
      }
    }
  }

  /**
   * Handles a failed write. A full pipe or disk may have room again later; any other error means that the reader is
   * gone.
   */
  #failed(code: unknown, batch: Batch): void {
    this.#blocked = code === "EAGAIN" || code === "ENOSPC";
    if (code === "EAGAIN") return;
    batch.rest = Buffer.alloc(0);
    if (code === "ENOSPC") {
      this.#lose([batch]);
      this.#dropped += batch.lines;
    } else {
      this.#gone = true;
      this.#lose(this.#queue);
      this.#queue.length = 1;
      this.#dropped = 0;
    }
  }

  #lose(batches: readonly Batch[]): void {
    for (const { lines, reportsDropped } of batches) if (!reportsDropped) this.#lost += lines;
  }
}
