import { writeSync } from "node:fs";
import type { LineBytes } from "./line-bytes.ts";

export interface LineWriterOptions {
  /** A pipe or socket among them must be non-blocking. */
  readonly fd: number;
  /** Bytes that may wait for the reader; lines on top of that are dropped. */
  readonly maxWaiting: number;
  /** The line that tells how many were dropped; written once there is room again. */
  readonly droppedLine: (dropped: number) => string;
}

interface Batch {
  /** Lines that are lost when it cannot be written. */
  readonly lines: number;
  /** Whether it tells of lines, which were lost before. */
  readonly tells: boolean;
  readonly length: number;
  /** Where the lines stand; used again once they are written. */
  readonly place: Buffer;
  rest: Buffer;
}

/** Bytes of one write: what Docker's log copier reads at once, and an empty pipe takes whole. */
const BATCH_SIZE = 16 * 1024;
/** Room for one batch and the line that makes it full. */
const PLACE_SIZE = 2 * BATCH_SIZE;
const LINE_END = 0x0a;
/** Milliseconds that the first line after quiet waits for company. */
const BATCH_DELAY = 20;
/** Milliseconds until a full pipe is tried again. */
const RETRY_DELAY = 5;

/**
 * Writes lines to a file descriptor in batches. The write is synchronous and the descriptor does not block: a full pipe
 * says so and is tried again later. Asynchronous writes to a blocking pipe, which is what pino's own destination makes,
 * occupy a thread of libuv's pool until somebody reads, and the exit of the process waits for that thread: with a reader
 * that stands still it never ended (tried on Node 26 with sonic-boom 4.2 and with `fs.write`).
 * When the reader has gone, lines go nowhere.
 */
export class LineWriter {
  readonly #options: LineWriterOptions;
  #open: Buffer = Buffer.allocUnsafe(PLACE_SIZE);
  #used = 0;
  #lines = 0;
  #spare: Buffer | undefined;
  readonly #queue: Batch[] = [];
  #timer: NodeJS.Timeout | undefined;
  #blocked = false;
  #waiting = 0;
  /** Lines that were lost and not told of yet. */
  #dropped = 0;
  #lost = 0;
  #gone = false;
  #idle: PromiseWithResolvers<void> | undefined;

  constructor(options: LineWriterOptions) {
    this.#options = options;
  }

  /** Lines that were lost so far, told of or not. */
  get lost(): number {
    return this.#lost;
  }

  /** Takes one line, without its end. */
  write(line: string): void {
    const length = Buffer.byteLength(line);
    if (!this.#takes(length)) return;
    this.#add(line, length, 1);
    this.#sendSoon();
  }

  /** Takes one line, without its end; its bytes are copied. */
  writeBytes(line: LineBytes): void {
    const { length } = line;
    if (!this.#takes(length)) return;
    this.#makeRoom(length);
    line.copyTo(this.#open, this.#used);
    this.#added(length, 1);
    this.#sendSoon();
  }

  /** Writes what waits, as far as the reader takes it. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#blocked = false;
    this.#cutBatch();
    this.#writeQueue();
    if (this.#dropped > 0 && this.#waiting < this.#options.maxWaiting / 2) this.#tellDropped();
    if (this.#queue.length === 0) this.#idle?.resolve();
    else this.#sendIn(RETRY_DELAY);
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

  #sendSoon(): void {
    if (this.#used < BATCH_SIZE) this.#sendIn(BATCH_DELAY);
    else if (this.#blocked) this.#cutBatch();
    else this.flush();
  }

  #sendIn(delay: number): void {
    this.#timer ??= setTimeout(() => this.flush(), delay).unref();
  }

  #tellDropped(): void {
    const line = this.#options.droppedLine(this.#dropped);
    this.#add(line, Buffer.byteLength(line), this.#dropped);
    this.#dropped = 0;
    this.#cutBatch(true);
    this.#writeQueue();
  }

  /** Whether a line of so many bytes may wait; if not, it is counted as lost, and told of where there is a reader. */
  #takes(length: number): boolean {
    const fits = !this.#gone && this.#waiting + length < this.#options.maxWaiting;
    if (fits) return true;
    this.#lost++;
    if (!this.#gone) this.#dropped++;
    return false;
  }

  #add(line: string, length: number, standsFor: number): void {
    this.#makeRoom(length);
    this.#open.write(line, this.#used);
    this.#added(length, standsFor);
  }

  #makeRoom(length: number): void {
    if (this.#used + length < this.#open.length) return;
    this.#cutBatch();
    if (length >= this.#open.length) this.#open = Buffer.allocUnsafe(length + 1);
  }

  #added(length: number, standsFor: number): void {
    this.#used += length;
    this.#open[this.#used++] = LINE_END;
    this.#lines += standsFor;
    this.#waiting += length + 1;
  }

  #cutBatch(tells = false): void {
    if (this.#used === 0) return;
    const place = this.#open;
    const rest = place.subarray(0, this.#used);
    this.#queue.push({ lines: this.#lines, tells, length: this.#used, place, rest });
    this.#open = this.#spare ?? Buffer.allocUnsafe(PLACE_SIZE);
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
        this.#failed(error instanceof Error && "code" in error ? error.code : undefined, batch);
      }
      if (batch.rest.length === 0) {
        this.#queue.shift();
        this.#waiting -= batch.length;
        if (batch.place.length === PLACE_SIZE) this.#spare = batch.place;
      }
    }
  }

  /** A full pipe and a full disk have room again later; any other error means that nobody reads any more. */
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
    for (const { lines, tells } of batches) if (!tells) this.#lost += lines;
  }
}
