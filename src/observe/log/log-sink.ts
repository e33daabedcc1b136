import { isatty } from "node:tty";
import { systemClock, type Clock } from "../../lib/clock.ts";
import type { LineBytes } from "./line-bytes.ts";
import { LineWriter } from "./line-writer.ts";
import { prettyLine } from "./pretty-line.ts";

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
  /** The number of lines lost so far because the reader was too slow; 0 for a sink that passes lines to another one. */
  dropped(): number;
}

export interface LogSinkOptions {
  /** Default: standard output. */
  readonly fd?: number;
  /** `auto`: pretty on a terminal, else JSON. */
  readonly format: "json" | "pretty" | "auto";
  /** Default: true on a terminal, unless `NO_COLOR` is set (https://no-color.org). */
  readonly color?: boolean;
  /** The maximum number of bytes that may wait for a slow reader. */
  readonly maxWaiting?: number;
  readonly clock?: Clock;
}

/** The default of `maxWaiting`. */
export const MAX_WAITING = 8 * 1024 * 1024;

/**
 * Creates a sink that writes to standard output. A slow reader never delays the process: it loses lines, which are
 * counted and reported.
 */
export function createLogSink(options: LogSinkOptions): LogSink {
  const { fd = 1, format, clock = systemClock, maxWaiting = MAX_WAITING } = options;
  // The getter of `process.stdout` makes a pipe on standard output non-blocking, which the writer needs.
  if (fd === 1) void process.stdout;
  const terminal = isatty(fd);
  const pretty = format === "pretty" || (format === "auto" && terminal);
  const color = options.color ?? (terminal && (process.env["NO_COLOR"] ?? "") === "");
  return new LineWriter({
    fd,
    maxWaiting,
    clock,
    render: pretty ? (line) => prettyLine(line, color) : undefined,
  });
}
