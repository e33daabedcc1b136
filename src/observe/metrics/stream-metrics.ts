import type { Observer } from "../../core/observer.ts";
import { STREAM_ENDS } from "../../core/request/outcome.ts";
import { increment, type DefineMetric, slotCounter, slotsOf } from "./counters.ts";

/** Defines the metrics of requests and WebSockets that Sallyport ended. */
export function streamMetrics(define: DefineMetric): Pick<Observer, "streamEnded"> {
  const slots = slotsOf(STREAM_ENDS);
  const ended = slotCounter(
    define(
      "streams_ended_total",
      "Requests and WebSockets ended because the caller is no longer allowed.",
      "reason",
    ),
    STREAM_ENDS.map((reason) => ({ reason })),
  );
  return {
    streamEnded(reason) {
      increment(ended.counts, slots.get(reason));
    },
  };
}
