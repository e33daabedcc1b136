import type { Observer } from "../core/observer.ts";
import type { Tracing } from "../observe/tracing/opentelemetry.ts";
import type { Intake } from "../server/request/intake.ts";

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
