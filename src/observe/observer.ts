import type { Observer } from "../core/observer.ts";
import type { Clock } from "../lib/clock.ts";
import { accessLevel, writeAccessLine } from "./access-log.ts";
import { LineBytes } from "./line-bytes.ts";
import { reaches, type LogLevel } from "./log-level.ts";
import type { LogSink } from "./log-sink.ts";

export interface ObserverOptions {
  /** Where everything is counted. */
  readonly metrics: Observer;
  readonly sink: LogSink;
  readonly clock: Clock;
  /** Access lines below it are not written: from `warn` on only failures of ours are, at `error` none. */
  readonly level: LogLevel;
}

/** Counts by the metrics, and writes one access line for every request that ends. */
export function createObserver(options: ObserverOptions): Observer {
  const { metrics, sink, clock, level } = options;
  const writesInfo = reaches("info", level);
  const writesWarn = reaches("warn", level);
  const line = new LineBytes();
  return {
    ...metrics,
    requestFinished(outcome) {
      metrics.requestFinished(outcome);
      if (writesInfo || (writesWarn && accessLevel(outcome) === "warn")) {
        writeAccessLine(line, outcome, clock.now());
        sink.writeBytes(line);
      }
    },
  };
}
