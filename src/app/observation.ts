import type { Configuration } from "../config/configuration.ts";
import type { Observer } from "../core/observer.ts";
import { systemClock } from "../lib/clock.ts";
import { createObserver } from "../observe/log/access-log.ts";
import { createLog } from "../observe/log/application-log.ts";
import type { LogSink } from "../observe/log/log-sink.ts";
import { createMetrics } from "../observe/metrics/metrics.ts";
import { RecentLog } from "../observe/recent/recent-log.ts";
import { seriesOf } from "./gate/from-configuration.ts";
import type { Tracing } from "../observe/tracing/opentelemetry.ts";
import type { Intake } from "../server/request/intake.ts";

/** The log, the metrics and the observer, one each per thread. */
export type Observation = ReturnType<typeof createObservation>;

/** @param options those of the metrics. */
export function createObservation(
  configuration: Configuration,
  sink: LogSink,
  options: Pick<Parameters<typeof createMetrics>[0], "version" | "logLinesDropped" | "process">,
) {
  const { level, access } = configuration.log;
  const clock = systemClock;
  const log = createLog({ sink, level, clock });
  const metrics = createMetrics({ ...seriesOf(configuration), clock, ...options });
  const recent = new RecentLog(clock.now);
  const observer = createObserver({ metrics, recent, sink, clock, level, access });
  return { sink, log, metrics, recent, observer, clock };
}

/**
 * Wraps an intake so that it begins a trace for each request, including refused ones. Returns the intake itself if
 * tracing is off.
 */
export function tracedIntake(intake: Intake, tracing: Tracing | undefined): Intake {
  if (tracing === undefined) return intake;
  return (message, id) => {
    tracing.began(id, message.rawHeaders);
    return intake(message, id);
  };
}

/**
 * Wraps an observer so that it ends traces and adds their ids to the log. Returns the observer itself if tracing is
 * off.
 */
export function tracedObserver(observer: Observer, tracing: Tracing | undefined): Observer {
  if (tracing === undefined) return observer;
  return {
    ...observer,
    requestFinished(outcome) {
      const traceId = tracing.ended(outcome);
      observer.requestFinished(traceId === undefined ? outcome : { ...outcome, traceId });
    },
  };
}
