import type { Observer } from "../core/observer.ts";
import type { Clock } from "../lib/clock.ts";
import { accessLevel, writeAccessLine } from "./log/access-log.ts";
import { LineBytes } from "./log/line-bytes.ts";
import { reaches, type LogLevel } from "./log/log-level.ts";
import type { LogSink } from "./log/log-sink.ts";
import type { RecentLog } from "./recent/recent-log.ts";

export interface ObserverOptions {
  /** Counts everything. */
  readonly metrics: Observer;
  /** Keeps logins and refusals for the status page. */
  readonly recent: RecentLog;
  readonly sink: LogSink;
  readonly clock: Clock;
  /** The minimum level of access lines: `warn` writes only Sallyport's own failures, `error` none. */
  readonly level: LogLevel;
  /** The requests that get an access line; `errors` means a status of 400 or higher. */
  readonly access: AccessLog;
}

type AccessLog = "all" | "errors" | "none";

/** Returns the lowest status that gets an access line. */
export function leastLoggedStatus(access: AccessLog): number {
  if (access === "none") return Infinity;
  return access === "errors" ? 400 : 0;
}

/** Counts everything in the metrics, and writes the access lines of finished requests. */
export function createObserver(options: ObserverOptions): Observer {
  const { metrics, recent, sink, clock, level, access } = options;
  const writesInfo = reaches("info", level);
  const writesWarn = reaches("warn", level);
  const leastStatus = leastLoggedStatus(access);
  const line = new LineBytes();
  return {
    ...metrics,
    loginFinished(result, seconds) {
      metrics.loginFinished(result, seconds);
      recent.loginFinished(result);
    },
    requestRefused(reason) {
      metrics.requestRefused(reason);
      recent.requestRefused(reason);
    },
    requestFinished(outcome) {
      metrics.requestFinished(outcome);
      const { status } = outcome;
      if (status >= 400 && outcome.source === "self") recent.requestFailed(outcome);
      if (status < leastStatus) return;
      if (writesInfo || (writesWarn && accessLevel(outcome) === "warn")) {
        writeAccessLine(line, outcome, clock.now());
        sink.writeBytes(line);
      }
    },
  };
}
