import type { Observer } from "../../core/observer.ts";
import { LOGIN_RESULTS } from "../../core/request/outcome.ts";
import { increment, slotCounter, slotsOf, type DefineMetric } from "./counters.ts";
import { LatencyHistogram, LOGIN_BUCKETS } from "./latency-histogram.ts";

/** Defines the metrics of logins and tokens. */
export function loginMetrics(
  define: DefineMetric,
): Pick<Observer, "tokenCache" | "tokenIssued" | "loginFinished"> {
  const resultSlots = slotsOf(LOGIN_RESULTS);
  const cache = slotCounter(
    define(
      "token_cache_requests_total",
      "Lookups in the cache of verified tokens, by result.",
      "result",
    ),
    [{ result: "hit" }, { result: "miss" }],
  );
  const issued = slotCounter(define("tokens_issued_total", "Tokens signed."), [{}]);
  const logins = slotCounter(
    define("logins_total", "Login attempts.", "result"),
    LOGIN_RESULTS.map((result) => ({ result })),
  );
  const durations = new LatencyHistogram(
    define("login_duration_seconds", "Duration of login attempts."),
    LOGIN_BUCKETS,
    [{}],
  );

  return {
    tokenCache(result) {
      increment(cache.counts, result === "hit" ? 0 : 1);
    },
    tokenIssued() {
      increment(issued.counts, 0);
    },
    loginFinished(result, seconds) {
      increment(logins.counts, resultSlots.get(result));
      durations.record(0, seconds);
    },
  };
}
