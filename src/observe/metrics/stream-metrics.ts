import type { Observer } from "../../core/observer.ts";
import { STREAM_ENDS } from "../../core/request/outcome.ts";
import { increment, type DefineMetric, slotCounter, slotsOf } from "./counters.ts";

/** What is counted of streams that were ended before they ended by themselves. */
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
