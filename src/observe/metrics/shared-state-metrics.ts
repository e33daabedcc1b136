import { Gauge } from "prom-client";
import type { Observer } from "../../core/observer.ts";
import { SHARED_OPERATIONS } from "../../core/shared-parts.ts";
import { type DefineMetric, externalCounter, increment, slotCounter, slotsOf } from "./counters.ts";
import { LatencyHistogram, REQUEST_BUCKETS } from "./latency-histogram.ts";

/** The state server from the point of view of this process. */
export interface SharedStateGauge {
  readonly up: boolean;
  /** Login attempts that were not published to other replicas. */
  readonly lost: number;
}

const RESULTS = ["ok", "failed"] as const;

/**
 * Defines the metrics of the shared state. Only the main thread has them, because it is the only one that uses the
 * server.
 */
export function sharedStateMetrics(
  define: DefineMetric,
  state: () => SharedStateGauge | undefined,
): Pick<Observer, "sharedStateAsked"> {
  const rows = slotsOf(SHARED_OPERATIONS);
  const asked = slotCounter(
    define(
      "shared_state_operations_total",
      "Requests to the state server of all replicas.",
      "operation",
      "result",
    ),
    SHARED_OPERATIONS.flatMap((operation) => RESULTS.map((result) => ({ operation, result }))),
  );
  const durations = new LatencyHistogram(
    define("shared_state_operation_duration_seconds", "Duration of these requests.", "operation"),
    REQUEST_BUCKETS,
    SHARED_OPERATIONS.map((operation) => ({ operation })),
  );
  externalCounter(
    define("shared_state_lost_attempts_total", "Login attempts not published to other replicas."),
    () => state()?.lost ?? 0,
  );
  const { registry, ...head } = define("shared_state_up", "1 while the state server can be used.");
  new Gauge({
    ...head,
    aggregator: "max",
    registers: [registry],
    collect() {
      this.reset();
      const current = state();
      if (current === undefined) this.remove();
      else this.set(Number(current.up));
    },
  });
  return {
    sharedStateAsked(operation, successful, seconds) {
      const row = rows.get(operation) ?? 0;
      increment(asked.counts, row * RESULTS.length + (successful ? 0 : 1));
      if (seconds !== undefined) durations.record(row, seconds);
    },
  };
}
