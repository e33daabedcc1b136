import type { Observer } from "../core/observer.ts";
import type { Tracing } from "../core/tracing.ts";
import type { Intake } from "../server/intake.ts";

/** An intake that begins the trace of each request, the refused ones too; the intake itself where tracing is off. */
export function tracedIntake(intake: Intake, tracing: Tracing | undefined): Intake {
  if (tracing === undefined) return intake;
  return (message, id) => {
    tracing.began(id, message.rawHeaders);
    return intake(message, id);
  };
}

/** An observer that ends them and names the trace in the log; the observer itself where tracing is off. */
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
