import { Gauge } from "prom-client";
import type { UpstreamLoad } from "../../core/request/forwarder.ts";
import type { Observer } from "../../core/observer.ts";
import { UPSTREAM_ERROR_REASONS } from "../../core/request/outcome.ts";
import {
  codeCounter,
  increment,
  slotCounter,
  type SlotCounter,
  slotsOf,
  type DefineMetric,
  type MetricDefinition,
} from "./counters.ts";
import { SERVER_ERRORS } from "./label-words.ts";
import { LatencyHistogram, REQUEST_BUCKETS } from "./latency-histogram.ts";

/** Metrics of the backend side. An unknown upstream is ignored. */
export interface UpstreamMetrics extends Pick<
  Observer,
  "upstreamAnswered" | "upstreamFailed" | "upstreamRetried" | "targetLeftOut" | "targetLookedUp"
> {
  /** Adds upstreams of a new configuration. */
  addUpstreams(names: readonly string[]): void;
}

export function upstreamMetrics(
  define: DefineMetric,
  configured: readonly string[],
  loadOf: (upstream: string) => UpstreamLoad,
): UpstreamMetrics {
  const upstreamSlots = new Map(configured.map((upstream, slot) => [upstream, slot]));
  const byUpstream = configured.map((upstream) => ({ upstream }));
  const reasonSlots = slotsOf(UPSTREAM_ERROR_REASONS);

  const answers = codeCounter(
    define("upstream_requests_total", "Responses of the backends.", "upstream", "code"),
    byUpstream,
    SERVER_ERRORS,
  );
  const durations = durationHistogram(define, byUpstream);
  const errors = errorCounter(define, byUpstream);
  const { addTargets, ...targets } = targetCounters(define, byUpstream, upstreamSlots);
  showLoads(define, upstreamSlots, loadOf);
  return {
    addUpstreams(names) {
      const more = names
        .filter((name) => !upstreamSlots.has(name))
        .map((upstream) => ({ upstream }));
      for (const { upstream } of more) upstreamSlots.set(upstream, upstreamSlots.size);
      answers.add(more);
      durations.add(more);
      errors.add(byReason(more));
      addTargets(more);
    },
    upstreamAnswered(upstream, code, seconds) {
      const slot = upstreamSlots.get(upstream);
      if (slot === undefined) return;
      answers.count(slot, code);
      durations.record(slot, seconds);
    },
    ...targets,
    upstreamFailed(upstream, reason) {
      const row = upstreamSlots.get(upstream);
      const column = reasonSlots.get(reason);
      if (row === undefined || column === undefined) return;
      increment(errors.counts, row * UPSTREAM_ERROR_REASONS.length + column);
    },
  };
}

type UpstreamLabels = readonly { readonly upstream: string }[];

function durationHistogram(define: DefineMetric, upstreams: UpstreamLabels): LatencyHistogram {
  const help = "Time from dispatch until the first byte of a backend's response.";
  const head = define("upstream_response_duration_seconds", help, "upstream");
  return new LatencyHistogram(head, REQUEST_BUCKETS, upstreams);
}

function errorCounter(define: DefineMetric, upstreams: UpstreamLabels): SlotCounter {
  const help = "Requests that a backend failed to answer.";
  const head = define("upstream_errors_total", help, "upstream", "reason");
  return slotCounter(head, byReason(upstreams));
}

const LOOKUP_RESULTS = ["success", "failure"] as const;

/** Defines the counters of target events. `addTargets` of the result adds upstreams to them. */
function targetCounters(
  define: DefineMetric,
  upstreams: UpstreamLabels,
  slots: ReadonlyMap<string, number>,
) {
  const retries = slotCounter(
    define("upstream_retries_total", "Requests sent to a backend again.", "upstream"),
    upstreams,
  );
  const leftOut = slotCounter(
    define("upstream_targets_left_out_total", "Times that a target was left out.", "upstream"),
    upstreams,
  );
  const lookups = slotCounter(
    define("upstream_lookups_total", "Lookups of names of targets.", "upstream", "result"),
    byResult(upstreams),
  );
  return {
    addTargets(more: UpstreamLabels) {
      retries.add(more);
      leftOut.add(more);
      lookups.add(byResult(more));
    },
    upstreamRetried: (upstream: string) => countIn(retries, slots.get(upstream)),
    targetLeftOut: (upstream: string) => countIn(leftOut, slots.get(upstream)),
    targetLookedUp(upstream: string, found: boolean) {
      const slot = slots.get(upstream);
      if (slot === undefined) return;
      countIn(lookups, slot * LOOKUP_RESULTS.length + (found ? 0 : 1));
    },
  };
}

function byResult(upstreams: UpstreamLabels) {
  return upstreams.flatMap((labels) => LOOKUP_RESULTS.map((result) => ({ ...labels, result })));
}

function countIn({ counts }: SlotCounter, slot: number | undefined): void {
  if (slot !== undefined) increment(counts, slot);
}

function showLoads(
  define: DefineMetric,
  upstreams: ReadonlyMap<string, number>,
  loadOf: (upstream: string) => UpstreamLoad,
): void {
  showLoad(
    define("upstream_requests_in_flight", "Requests in progress at the backends.", "upstream"),
    upstreams,
    (upstream) => loadOf(upstream).inFlight,
  );
  showLoad(
    define("upstream_queue_length", "Requests that wait for a connection.", "upstream"),
    upstreams,
    (upstream) => loadOf(upstream).waiting,
  );
  showLoad(
    define("upstream_targets", "Known targets.", "upstream"),
    upstreams,
    (upstream) => loadOf(upstream).targets,
  );
  showLoad(
    define("upstream_targets_left_out", "Targets that are currently not used.", "upstream"),
    upstreams,
    (upstream) => loadOf(upstream).leftOut,
  );
}

function byReason(upstreams: UpstreamLabels) {
  return upstreams.flatMap((labels) =>
    UPSTREAM_ERROR_REASONS.map((reason) => ({ ...labels, reason })),
  );
}

/** Registers a gauge that is read on a scrape. The values of several threads are added up. */
function showLoad(
  { registry, ...head }: MetricDefinition,
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
