import type { LogSink } from "../../src/observe/log/log-sink.ts";

/** Creates a sink that collects its lines. */
export function keptLines(): { readonly sink: LogSink; readonly lines: string[] } {
  const lines: string[] = [];
  const sink: LogSink = {
    write: (line) => void lines.push(line),
    writeBytes: (line) => void lines.push(line.toString()),
    flush: () => undefined,
    drain: () => Promise.resolve(),
    countLost: () => undefined,
    dropped: () => 0,
    losing: () => undefined,
  };
  return { sink, lines };
}
