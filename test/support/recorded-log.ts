import type { Log } from "../../src/core/log.ts";

interface RecordedLine {
  readonly level: keyof Log;
  readonly message: string;
  readonly fields: Record<string, unknown> | undefined;
}

/** Creates a log that records its lines. */
export function recordedLog(): Log & { readonly lines: readonly RecordedLine[] } {
  const lines: RecordedLine[] = [];
  const at =
    (level: keyof Log): Log["info"] =>
    (message, fields) =>
      void lines.push({ level, message, fields });
  return { lines, debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
