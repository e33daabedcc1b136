import { isatty } from "node:tty";
import { styleText } from "node:util";
import { writeSync } from "node:fs";
import type { LineBytes } from "./line-bytes.ts";
import { ACCESS_FIELDS } from "./access-log.ts";
import { quoted } from "./redaction.ts";
import { systemCode } from "../../lib/text/error-code.ts";
import { isJsonObject } from "../../lib/text/strict-json.ts";

interface LineWriterOptions {
  /** Pipes and sockets must be non-blocking. */
  readonly fd: number;
  /** The maximum number of bytes that may wait for the reader; further lines are dropped. */
  readonly maxWaiting: number;
  /** Converts each line for people; undefined if lines are written as they are. */
  readonly render: ((line: string) => string) | undefined;
}

interface Batch {
  /** The number of dropped lines that it reports; undefined if it contains the lines of a log. */
  readonly reports: number | undefined;
  /** Counts as waiting until the batch is written or lost. */
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
/** Delay before writing to a full pipe or disk again, in milliseconds. */
const RETRY_DELAY_MS = 5;
/** The minimum time between two reports of dropped lines, in milliseconds. */
const REPORT_EVERY_MS = 1_000;
/** The errors of a disk or quota without space, or of a file that has reached its maximum size. */
const FULL = new Set<unknown>(["ENOSPC", "EDQUOT", "EFBIG"]);

/**
 * Writes lines to a file descriptor in batches, synchronously and without blocking: a full pipe returns EAGAIN, and
 * the write is retried later. Asynchronous writes to a blocking pipe, like those of pino's own destination, occupy a
 * thread of libuv's pool until the reader reads. The process waits for that thread at exit, so with a stalled reader
 * it never exited (tested on Node 26 with sonic-boom 4.2 and with `fs.write`). If the reader is gone, lines are
 * discarded. On a full disk only whole lines are: a line that was begun is continued once there is space.
 */
class LineWriter implements LogSink {
  readonly #options: LineWriterOptions;
  #open: Buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  #used = 0;
  #spare: Buffer | undefined;
  readonly #queue: Batch[] = [];
  #timer: NodeJS.Timeout | undefined;
  #blocked = false;
  #waiting = 0;
  /** Lost lines that have not been reported yet. */
  #dropped = 0;
  #lost = 0;
  #reportedAt = -Infinity;
  #reporting: NodeJS.Timeout | undefined;
  #gone = false;
  /** Why the last write that failed did. */
  #failure = "";
  #idle: PromiseWithResolvers<void> | undefined;

  constructor(options: LineWriterOptions) {
    this.#options = options;
  }

  dropped(): number {
    return this.#lost;
  }

  losing(): string | undefined {
    return this.#gone || this.#dropped > 0 ? this.#failure : undefined;
  }

  write(line: string): void {
    const text = this.#options.render?.(line) ?? line;
    const length = Buffer.byteLength(text);
    if (!this.#makeRoom(length)) return;
    this.#open.write(text, this.#used);
    this.#added(length);
  }

  writeBytes(line: LineBytes): void {
    if (this.#options.render !== undefined) this.write(line.toString());
    else if (this.#makeRoom(line.length)) {
      line.copyTo(this.#open, this.#used);
      this.#added(line.length);
    }
  }

  countLost(lines: number): void {
    this.#lost += lines;
    if (this.#gone) return;
    this.#dropped += lines;
    this.#sendIn(BATCH_DELAY_MS);
  }

  flush(): void {
    // How many lines were dropped is written at once, since it may be the last time.
    this.#reportedAt = -Infinity;
    this.#flush();
  }

  async drain(timeoutMs: number): Promise<void> {
    this.flush();
    if (this.#queue.length === 0) return;
    this.#idle ??= Promise.withResolvers<void>();
    const timer = setTimeout(this.#idle.resolve, timeoutMs);
    await this.#idle.promise;
    clearTimeout(timer);
    this.#idle = undefined;
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#blocked = false;
    this.#cutBatch();
    this.#writeQueue();
    if (this.#dropped > 0 && this.#waiting < this.#options.maxWaiting / 2) this.#reportDropped();
    if (this.#queue.length === 0) this.#idle?.resolve();
    else this.#sendIn(RETRY_DELAY_MS);
  }

  #sendIn(delay: number): void {
    this.#timer ??= setTimeout(() => this.#flush(), delay).unref();
  }

  /** Queues the line that reports how many were dropped, or waits until it may: a full disk drops lines all the time. */
  #reportDropped(): void {
    const now = performance.now();
    const waitMs = this.#reportedAt + REPORT_EVERY_MS - now;
    clearTimeout(this.#reporting);
    if (waitMs > 0) {
      this.#reporting = setTimeout(() => this.#flush(), waitMs).unref();
      return;
    }
    this.#reportedAt = now;
    const time = new Date().toISOString();
    const line = `{"time":"${time}","level":"warn","msg":"log lines were dropped","dropped":${this.#dropped},"see":"docs/runbook.md#log-lines-were-dropped"}`;
    const buffer = Buffer.from(`${this.#options.render?.(line) ?? line}\n`);
    const { length } = buffer;
    this.#queue.push({ reports: this.#dropped, length, buffer, rest: buffer });
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
    this.#queue.push({ reports: undefined, length, buffer, rest });
    this.#open = this.#spare ?? Buffer.allocUnsafe(BUFFER_BYTES);
    this.#spare = undefined;
    this.#used = 0;
  }

  #writeQueue(): void {
    while (!this.#blocked) {
      const [batch] = this.#queue;
      if (batch === undefined) return;
      try {
        batch.rest = batch.rest.subarray(writeSync(this.#options.fd, batch.rest));
      } catch (error) {
        this.#failed(systemCode(error));
        return;
      }
      if (batch.rest.length === 0) {
        this.#queue.shift();
        this.#waiting -= batch.length;
        if (batch.buffer.length === BUFFER_BYTES) this.#spare = batch.buffer;
      }
    }
  }

  /**
   * Handles a failed write. A full pipe has room again soon, and a full disk maybe later; any other error means that the
   * reader is gone.
   */
  #failed(code: unknown): void {
    this.#blocked = true;
    this.#failure = code === "EAGAIN" ? "its reader is slow" : String(code);
    if (code === "EAGAIN") return;
    this.#gone = !FULL.has(code);
    const lost = this.#queue.splice(0);
    const [begun] = lost;
    const torn = this.#gone || begun === undefined ? undefined : restOfLine(begun);
    this.#waiting = torn?.length ?? 0;
    if (begun !== undefined && torn !== undefined) {
      this.#queue.push({ ...begun, length: torn.length, rest: torn });
      begun.rest = begun.rest.subarray(torn.length);
    }
    for (const batch of lost) this.#lose(batch);
    if (this.#gone) this.#dropped = 0;
  }

  #lose({ reports, rest }: Batch): void {
    const lines = linesIn(rest);
    // What a report says was counted when it was dropped.
    if (reports === undefined) this.#lost += lines;
    this.#dropped += lines * (reports ?? 1);
  }
}

/** Returns what is left of the line of which a part was written; undefined if none was begun. */
function restOfLine({ buffer, rest }: Batch): Buffer | undefined {
  const at = rest.byteOffset - buffer.byteOffset;
  if (at === 0 || buffer[at - 1] === LINE_END) return undefined;
  return rest.subarray(0, rest.indexOf(LINE_END) + 1);
}

function linesIn(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(LINE_END); at !== -1; at = bytes.indexOf(LINE_END, at + 1)) lines++;
  return lines;
}

type Style = "dim" | "green" | "yellow" | "red" | "cyan";

const LEVEL_STYLES: ReadonlyMap<string, Style> = new Map([
  ["debug", "dim"],
  ["warn", "yellow"],
  ["error", "red"],
]);

/** Fields that appear at the beginning of every line. */
const IN_THE_HEAD = new Set(["time", "level", "msg"]);

/**
 * The further fields of a request, as many as fit, the most important first. `log.fields` come between the two lists.
 */
const FIRST = ["id", "reason", "subject", "route"];
const LAST = ["auth", "upstream", "client", "host"];
const OWN: ReadonlySet<string> = new Set(ACCESS_FIELDS);

/** The maximum width of the line of a request, in columns. */
const WIDTH = 120;

/** The maximum width of the method and of the path, in columns; longer ones are truncated. */
const METHOD_WIDTH = 16;
const PATH_WIDTH = 48;

/**
 * Renders a JSON line for people: `12:00:01.123 INFO  listening  address=0.0.0.0:8443`. Renders a request in at most
 * 120 columns: `12:00:01.123 INFO  200 GET /orders 3.1ms  id=… route=orders …`. Escapes unprintable characters.
 * Returns anything but a JSON object unchanged.
 */
export function prettyLine(json: string, color: boolean): string {
  const fields = parsed(json);
  if (fields === undefined) return json;
  const time = shown(fields["time"]).slice(11, 23);
  const level = shown(fields["level"]);
  const style = LEVEL_STYLES.get(level) ?? "green";
  const label = paint(style, level.toUpperCase().padEnd(5), color);
  const head = `${paint("dim", time, color)} ${label} `;
  const isRequest = fields["msg"] === "request" && fields["method"] !== undefined;
  return isRequest ? head + requestIn(fields, color) : head + messageIn(fields, color);
}

function messageIn(fields: Fields, color: boolean): string {
  const rest = Object.entries(fields)
    .filter(([name]) => !IN_THE_HEAD.has(name))
    .map(([name, value]) => field(name, value, color));
  return [readable(fields["msg"]), ...rest].join("  ").trimEnd();
}

function requestIn(fields: Fields, color: boolean): string {
  const status = Number(fields["status"]);
  const method = shortened(shown(fields["method"]), METHOD_WIDTH);
  const path = shortened(shown(fields["path"]), PATH_WIDTH);
  const request = `${method} ${path} ${Number(fields["duration_ms"]).toFixed(1)}ms`;
  const parts = [`${paint(statusStyle(status), String(status), color)} ${request}`];
  // `12:00:01.123 INFO  200 ` is 23 columns wide.
  let left = WIDTH - 23 - request.length;
  const additional = Object.keys(fields).filter((name) => !OWN.has(name));
  for (const name of [...FIRST, ...additional, ...LAST]) {
    const width = 3 + name.length + shown(fields[name]).length;
    if (fields[name] === undefined || width > left) continue;
    left -= width;
    parts.push(field(name, fields[name], color));
  }
  return parts.join("  ");
}

function shortened(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 3)}...` : text;
}

function field(name: string, value: unknown, color: boolean): string {
  return `${paint("dim", `${shown(name)}=`, color)}${shown(value)}`;
}

function statusStyle(status: number): Style {
  if (status >= 500) return "red";
  if (status >= 400) return "yellow";
  return status >= 300 ? "cyan" : "green";
}

type Fields = Readonly<Record<string, unknown>>;

function paint(style: Style, text: string, color: boolean): string {
  return color ? styleText(style, text, { validateStream: false }) : text;
}

function parsed(json: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Renders a value as one word. Quotes a text that contains spaces or anything but printable ASCII. */
function shown(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value) ?? "";
  return /^[!#-[\]-~]+$/.test(value) ? value : quoted(value);
}

/** Renders a message: keeps spaces, escapes unprintable characters. */
function readable(value: unknown): string {
  return typeof value === "string" ? quoted(value).slice(1, -1).replaceAll('\\"', '"') : "";
}

/** The destination of log lines. Its methods never block and never throw. */
export interface LogSink {
  /** Adds one line of JSON, without its end. */
  write(line: string): void;
  /** Adds one line of JSON, without its end; the bytes may be reused at once. */
  writeBytes(line: LineBytes): void;
  /** Writes synchronously as much as the reader accepts. For the `exit` event. */
  flush(): void;
  /** Resolves when everything is written, or after `timeoutMs` milliseconds. For an orderly exit. */
  drain(timeoutMs: number): Promise<void>;
  /** Counts lines that were lost before they reached this sink, and reports them together with its own. */
  countLost(lines: number): void;
  /** The number of lines lost so far, reported or not; 0 for a sink that passes lines to another one. */
  dropped(): number;
  /** Why lines are being lost; undefined once the number of all that were is written. */
  losing(): string | undefined;
}

interface LogSinkOptions {
  /** Default: standard output. */
  readonly fd?: number;
  /** `auto`: pretty on a terminal, else JSON. */
  readonly format: "json" | "pretty" | "auto";
  /** The maximum number of bytes that may wait for a slow reader. */
  readonly maxWaiting?: number;
}

/** The default of `maxWaiting`. */
export const MAX_WAITING = 8 * 1024 * 1024;

/**
 * Creates a sink that writes to standard output. A slow reader never delays the process: it loses lines, which are
 * counted and reported.
 */
export function createLogSink(options: LogSinkOptions): LogSink {
  const { fd = 1, format, maxWaiting = MAX_WAITING } = options;
  // The getter of `process.stdout` makes a pipe on standard output non-blocking, which the writer needs.
  if (fd === 1) void process.stdout;
  const terminal = isatty(fd);
  const pretty = format === "pretty" || (format === "auto" && terminal);
  // https://no-color.org
  const color = terminal && (process.env["NO_COLOR"] ?? "") === "";
  const render = pretty ? (line: string) => prettyLine(line, color) : undefined;
  return new LineWriter({ fd, maxWaiting, render });
}
