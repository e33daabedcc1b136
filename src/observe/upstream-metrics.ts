import type { Observer } from "../core/observer.ts";
import { codeCounter, countUp, slotCounter, slotsOf, type Introduce } from "./counters.ts";
import { UPSTREAM_ERROR_REASONS } from "./label-words.ts";
import { LatencyHistogram, REQUEST_BUCKETS } from "./latency-histogram.ts";

/** What is counted of the backends' side. An upstream that was not named is not counted. */
export function upstreamMetrics(
  introduce: Introduce,
  upstreams: readonly string[],
): Pick<Observer, "upstreamAnswered" | "upstreamFailed"> {
  const byUpstream = upstreams.map((upstream) => ({ upstream }));
  const upstreamSlots = slotsOf(upstreams);
  const reasonSlots = slotsOf(UPSTREAM_ERROR_REASONS);

  const countAnswer = codeCounter(
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
    byUpstream.flatMap((labels) => UPSTREAM_ERROR_REASONS.map((reason) => ({ ...labels, reason }))),
  );

  return {
    upstreamAnswered(upstream, code, seconds) {
      const slot = upstreamSlots.get(upstream);
      if (slot === undefined) return;
      countAnswer(slot, code);
      durations.record(slot, seconds);
    },
    upstreamFailed(upstream, reason) {
      const row = upstreamSlots.get(upstream);
      const column = reasonSlots.get(reason);
      if (row === undefined || column === undefined) return;
      countUp(errors, row * UPSTREAM_ERROR_REASONS.length + column);
    },
  };
}
