import type { Observer } from "../../core/observer.ts";
import { STREAM_ENDS } from "../../core/request/outcome.ts";
import { increment, type DefineMetric, slotCounter, slotsOf } from "./counters.ts";

/** Counts streams that Sallyport ended. */
export function streamMetrics(define: DefineMetric): Pick<Observer, "streamEnded"> {
  const slots = slotsOf(STREAM_ENDS);
  const ended = slotCounter(
    define(
      "streams_ended_total",
      "Requests and WebSockets cut since their caller may no longer.",
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
