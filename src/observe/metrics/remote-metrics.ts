import type { Observer } from "../../core/observer.ts";
import { REMOTE_CHECK_RESULTS, type RemoteCheckName } from "../../core/remote-check.ts";
import { type DefineMetric, increment, slotCounter } from "./counters.ts";
import { LatencyHistogram, REQUEST_BUCKETS } from "./latency-histogram.ts";

interface RemoteMetrics extends Pick<Observer, "remoteChecked"> {
  /** Adds the checks of a new configuration. */
  addChecks(checks: readonly RemoteCheckName[]): void;
}

const keyOf = ({ kind, name }: RemoteCheckName): string => `${kind} ${name}`;

/** Defines the metrics of checks by other servers. Does not count an unknown check. */
export function remoteMetrics(
  define: DefineMetric,
  configured: readonly RemoteCheckName[],
): RemoteMetrics {
  const slots = new Map<string, number>();
  const counts = slotCounter(
    define("remote_checks_total", "Checks by other servers.", "kind", "name", "result"),
    [],
  );
  const durations = new LatencyHistogram(
    define("remote_check_duration_seconds", "Duration of these checks.", "kind", "name"),
    REQUEST_BUCKETS,
    [],
  );
  const addChecks = (checks: readonly RemoteCheckName[]): void => {
    const more = checks.filter((check) => !slots.has(keyOf(check)));
    for (const check of more) slots.set(keyOf(check), slots.size);
    counts.add(
      more.flatMap((check) => REMOTE_CHECK_RESULTS.map((result) => ({ ...check, result }))),
    );
    durations.add(more.map((check) => ({ ...check })));
  };
  addChecks(configured);
  return {
    addChecks,
    remoteChecked(check, result, seconds) {
      const slot = slots.get(keyOf(check));
      if (slot === undefined) return;
      const column = REMOTE_CHECK_RESULTS.indexOf(result);
      increment(counts.counts, slot * REMOTE_CHECK_RESULTS.length + column);
      if (seconds !== undefined) durations.record(slot, seconds);
    },
  };
}
