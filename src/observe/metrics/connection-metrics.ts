import { POSTPONED, type Observer } from "../../core/observer.ts";
import { increment, slotCounter, slotsOf, type DefineMetric } from "./counters.ts";

/** The metrics of connections. */
export function connectionMetrics(define: DefineMetric): Pick<Observer, "connectionsPostponed"> {
  const slots = slotsOf(POSTPONED);
  const postponed = slotCounter(
    define(
      "connections_postponed_total",
      "Connections delayed because their client used too much time.",
      "kind",
    ),
    POSTPONED.map((kind) => ({ kind })),
  );
  return {
    connectionsPostponed(what, connections) {
      increment(postponed.counts, slots.get(what), connections);
    },
  };
}
