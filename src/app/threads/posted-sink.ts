import type { LogSink } from "../../observe/log/log-sink.ts";
import type { LogBacklog } from "./log-backlog.ts";

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
  };
}
