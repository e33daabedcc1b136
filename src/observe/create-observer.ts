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
  /** The lowest level of access lines that are written: `warn` writes only failures of our own, `error` none. */
  readonly level: LogLevel;
  /** Which requests get an access line: `errors` are those with a status of 400 and more. */
  readonly access: AccessLog;
}

type AccessLog = "all" | "errors" | "none";

/** The lowest status that gets an access line. */
export function leastLoggedStatus(access: AccessLog): number {
  if (access === "none") return Infinity;
  return access === "errors" ? 400 : 0;
}

/** Counts everything in the metrics, and writes an access line for every finished request. */
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
