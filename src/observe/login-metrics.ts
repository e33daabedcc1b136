import type { Observer } from "../core/observer.ts";
import { LOGIN_RESULTS } from "../core/outcome.ts";
import { countUp, slotCounter, slotsOf, type Introduce } from "./counters.ts";
import { LatencyHistogram, LOGIN_BUCKETS } from "./latency-histogram.ts";

/** What is counted of logins and tokens. */
export function loginMetrics(
  introduce: Introduce,
): Pick<Observer, "tokenCache" | "tokenIssued" | "loginFinished"> {
  const resultSlots = slotsOf(LOGIN_RESULTS);
  const cache = slotCounter(
    introduce("token_cache_requests_total", "Whether a token had been verified before.", "result"),
    [{ result: "hit" }, { result: "miss" }],
  );
  const issued = slotCounter(introduce("tokens_issued_total", "Tokens signed."), [{}]);
  const logins = slotCounter(
    introduce("logins_total", "Attempts to log in.", "result"),
    LOGIN_RESULTS.map((result) => ({ result })),
  );
  const durations = new LatencyHistogram(
    introduce("login_duration_seconds", "From an attempt to log in until its result."),
    LOGIN_BUCKETS,
    [{}],
  );

  return {
    tokenCache(result) {
      countUp(cache.counts, result === "hit" ? 0 : 1);
    },
    tokenIssued() {
      countUp(issued.counts, 0);
    },
    loginFinished(result, seconds) {
      countUp(logins.counts, resultSlots.get(result));
      durations.record(0, seconds);
    },
  };
}
