import { Gauge } from "prom-client";
import type { UpstreamLoad } from "../core/forwarder.ts";
import type { Observer } from "../core/observer.ts";
import { UPSTREAM_ERROR_REASONS } from "../core/outcome.ts";
import {
  codeCounter,
  countUp,
  slotCounter,
  slotsOf,
  type Introduce,
  type MetricHead,
} from "./counters.ts";
import { LatencyHistogram, REQUEST_BUCKETS } from "./latency-histogram.ts";

/** What is counted of the backends' side. An upstream that was not named is not counted. */
export interface UpstreamMetrics extends Pick<Observer, "upstreamAnswered" | "upstreamFailed"> {
  /** Counts for upstreams that were not configured before, too. */
  addUpstreams(names: readonly string[]): void;
}

export function upstreamMetrics(
  introduce: Introduce,
  configured: readonly string[],
  loadOf: (upstream: string) => UpstreamLoad,
): UpstreamMetrics {
  const upstreamSlots = new Map(configured.map((upstream, slot) => [upstream, slot]));
  const byUpstream = configured.map((upstream) => ({ upstream }));
  const reasonSlots = slotsOf(UPSTREAM_ERROR_REASONS);

  const answers = codeCounter(
    introduce("upstream_requests_total", "Answers of the backends.", "upstream", "code"),
    byUpstream,
  );
  const durations = new LatencyHistogram(
    introduce(
      "upstream_response_duration_seconds",
      "From dispatch until a backend's first byte.",
      "upstream",
    ),
    REQUEST_BUCKETS,
    byUpstream,
  );
  const errors = slotCounter(
    introduce(
      "upstream_errors_total",
      "Requests that a backend failed to answer.",
      "upstream",
      "reason",
    ),
    byReason(byUpstream),
  );

  showLoad(
    introduce("upstream_requests_in_flight", "Requests under way at the backends.", "upstream"),
    upstreamSlots,
    (upstream) => loadOf(upstream).inFlight,
  );
  showLoad(
    introduce("upstream_queue_length", "Requests that wait for a connection.", "upstream"),
    upstreamSlots,
    (upstream) => loadOf(upstream).waiting,
  );

  return {
    addUpstreams(names) {
      const more = names
        .filter((name) => !upstreamSlots.has(name))
        .map((upstream) => ({ upstream }));
      for (const { upstream } of more) upstreamSlots.set(upstream, upstreamSlots.size);
      answers.add(more);
      durations.add(more);
      errors.add(byReason(more));
    },
    upstreamAnswered(upstream, code, seconds) {
      const slot = upstreamSlots.get(upstream);
      if (slot === undefined) return;
      answers.count(slot, code);
      durations.record(slot, seconds);
    },
    upstreamFailed(upstream, reason) {
      const row = upstreamSlots.get(upstream);
      const column = reasonSlots.get(reason);
      if (row === undefined || column === undefined) return;
      countUp(errors.counts, row * UPSTREAM_ERROR_REASONS.length + column);
    },
  };
}

function byReason(upstreams: readonly { readonly upstream: string }[]) {
  return upstreams.flatMap((labels) =>
    UPSTREAM_ERROR_REASONS.map((reason) => ({ ...labels, reason })),
  );
}

/** A gauge that is read on a scrape; several threads add up. */
function showLoad(
  { registry, ...head }: MetricHead,
  upstreams: ReadonlyMap<string, number>,
  read: (upstream: string) => number,
): void {
  new Gauge({
    ...head,
    registers: [registry],
    collect() {
      for (const upstream of upstreams.keys()) this.set({ upstream }, read(upstream));
    },
  });
}
