import { pino } from "pino";
import type { Log } from "../../core/log.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { escapeUnprintable, maskText, redactFields } from "./redaction.ts";
import type { LogSink } from "./log-sink.ts";

interface LogOptions {
  readonly sink: LogSink;
  readonly level: keyof Log;
  readonly clock?: Clock;
}

/** Names that every line already has. */
const OWN_NAMES = new Set(["time", "level", "msg", "see"]);

/** The document that explains each message and what to do about it. */
const RUNBOOK = "docs/runbook.md";

/**
 * Creates the application log: JSON lines with `level`, `time`, the fields and `msg`, written to the sink. In `warn`
 * and `error` lines, `see` points to the entry in the runbook. Secrets are masked. An error is logged as message,
 * code and cause, and with its stack if the log level is `debug`.
 */
export function createLog(options: LogOptions): Log {
  const { sink, level, clock = systemClock } = options;
  const stacks = level === "debug";
  const writer = pino(
    {
      level,
      base: null,
      messageKey: "msg",
      timestamp: () => `,"time":"${new Date(clock.now()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line) => sink.write(escapeUnprintable(line.slice(0, -1))) },
  );

  const write = (at: keyof Log, message: string, fields: Record<string, unknown> = {}): void => {
    if (!writer.isLevelEnabled(at)) return;
    const told = readableFields(fields, stacks);
    if (at === "warn" || at === "error") told["see"] = entryFor(message);
    writer[at](told, maskText(message));
  };
  return {
    debug: (message, fields) => write("debug", message, fields),
    info: (message, fields) => write("info", message, fields),
    warn: (message, fields) => write("warn", message, fields),
    error: (message, fields) => write("error", message, fields),
  };
}

/** Returns the fields as they are written. If a getter throws, the line is written without the fields. */
function readableFields(fields: Record<string, unknown>, stacks: boolean): Record<string, unknown> {
  try {
    const redacted = Object.entries(redactFields(fields, stacks));
    return Object.fromEntries(
      redacted.map(([name, value]) => [OWN_NAMES.has(name) ? `${name}_` : name, value]),
    );
  } catch {
    return { fields: "[unreadable]" };
  }
}

/**
 * Returns a link to the runbook. Its heading is the message up to the first colon; Git forges derive the anchor from
 * it.
 */
function entryFor(message: string): string {
  const [heading = ""] = message.split(":", 1);
  const anchor = heading.toLowerCase().replaceAll(/[^\w -]/g, "");
  return `${RUNBOOK}#${anchor.replaceAll(" ", "-")}`;
}
