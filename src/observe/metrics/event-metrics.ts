/** The metrics that count the events of requests. An unknown upstream is not counted, an unknown route as `none`. */
import { Histogram, type Registry } from "prom-client";
import { type Observer, POSTPONED } from "../../core/observer.ts";
import {
  LOGIN_RESULTS,
  REFUSAL_REASONS,
  STREAM_ENDS,
  UPSTREAM_ERROR_REASONS,
} from "../../core/request/outcome.ts";
import { MIRROR_RESULTS } from "../../core/route/route.ts";
import type { MetricDefinitions } from "./define-metrics.ts";
import { AUTH_REFUSALS, METHODS } from "./label-words.ts";
import { Counts, type Labels, LabelSet } from "./series.ts";
import type { Exemplar } from "./metrics.ts";

/** Upper bounds in seconds: Prometheus' defaults, and two lower ones for responses without a backend. */
export const REQUEST_BUCKETS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

/** Upper bounds in seconds; a password hash alone takes tens of milliseconds. */
export const LOGIN_BUCKETS: readonly number[] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

interface HistogramOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly registers: Registry[];
  readonly bounds: readonly number[];
  /** The labels of all series. Series may be added later. */
  readonly series: readonly Labels[];
}

/** A histogram of durations whose series are all known and exposed from the start. */
export class LatencyHistogram extends Histogram {
  readonly #options: HistogramOptions;
  readonly #bounds: Float64Array;
  /** For each series used so far, the counts per bucket, not cumulative, and after the last one the sum in seconds. */
  readonly #series: (Float64Array | undefined)[] = [];
  /** The exemplars of the buckets, by the series of the bucket as written in Prometheus' text format. */
  readonly exemplars = new Map<string, Exemplar>();

  constructor(options: HistogramOptions) {
    const { bounds, series: _, ...head } = options;
    super({ ...head, buckets: [...bounds] });
    this.#options = options;
    this.#bounds = Float64Array.from(bounds);
  }

  /**
   * Records one duration in a series, given by its index. Ignores unknown series and values that are not durations.
   *
   * @param traceId the id of the trace, if the request was traced. Each bucket keeps the last one.
   */
  record(index: number | undefined, seconds: number, traceId?: string): void {
    if (index === undefined || !(seconds >= 0)) return;
    const bounds = this.#bounds;
    while (this.#series.length <= index) this.#series.push(undefined);
    const seen = (this.#series[index] ??= new Float64Array(bounds.length + 2));
    let bucket = 0;
    while (bucket < bounds.length && seconds > (bounds[bucket] ?? 0)) bucket++;
    seen[bucket] = (seen[bucket] ?? 0) + 1;
    seen[bounds.length + 1] = (seen[bounds.length + 1] ?? 0) + seconds;
    if (traceId === undefined) return;
    const labels = { le: bounds[bucket] ?? "+Inf", ...this.#options.series[index] };
    const written = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
    const key = `${this.#options.name}_bucket{${written.join(",")}}`;
    this.exemplars.set(key, { traceId, value: seconds, atMs: Date.now() });
  }

  /**
   * prom-client 15 calls this on a scrape (lib/registry.js, and lib/histogram.js `get` for JSON). Overridden because
   * its own `observe` hashes and checks the labels of every observation.
   */
  async getForPromString(): Promise<object> {
    const { name, help, series, bounds } = this.#options;
    const values = series.flatMap((sharedLabels, index) => {
      const seen = this.#series[index];
      let count = 0;
      const buckets = [...bounds, "+Inf"].map((le, bucket) => {
        count += seen?.[bucket] ?? 0;
        return { metricName: `${name}_bucket`, labels: { le }, sharedLabels, value: count };
      });
      const sum = seen?.[bounds.length + 1] ?? 0;
      return [
        ...buckets,
        { metricName: `${name}_sum`, labels: {}, sharedLabels, value: sum },
        { metricName: `${name}_count`, labels: {}, sharedLabels, value: count },
      ];
    });
    return { name, help, type: "histogram", aggregator: "sum", values };
  }
}

export type Events<Name extends keyof Observer> = Pick<Observer, Name>;

export function requestMetrics(define: MetricDefinitions, routes: LabelSet) {
  const methods = new LabelSet(["method"], METHODS);
  const noRoute = routes.indexOf("none") ?? 0;
  const otherMethod = methods.indexOf("other") ?? 0;
  const answers = define.codes("http_requests_total", "Requests answered.", routes, methods);
  const durations = define.durations(
    "http_request_duration_seconds",
    "Time from the head of a request until its response was written.",
    REQUEST_BUCKETS,
    routes,
  );
  const webSockets = new Counts();
  const open = () => webSockets.samples(routes.labels);
  define.gauge("websocket_connections", "Open WebSockets.", "sum", open, routes.names);
  let inFlight = 0;
  const events: Events<
    "requestStarted" | "requestFinished" | "webSocketOpened" | "webSocketClosed"
  > = {
    requestStarted() {
      inFlight++;
    },
    requestFinished({ route, method, status, protocol, durationMs, traceId }) {
      inFlight--;
      const row = routes.indexOf(route) ?? noRoute;
      answers.add(row * METHODS.length + (methods.indexOf(method) ?? otherMethod), status);
      // The lifetime of a WebSocket is not a response time. Over HTTP/2 it opens with 200.
      const lifetime = status === 101 || (status === 200 && protocol === "websocket");
      if (!lifetime) durations.record(row, durationMs / 1000, traceId);
    },
    webSocketOpened: (route) => webSockets.add(routes.indexOf(route) ?? noRoute),
    webSocketClosed: (route) => webSockets.add(routes.indexOf(route) ?? noRoute, -1),
  };
  return { events, inFlight: () => inFlight, exemplars: durations.exemplars };
}

export function decisionMetrics(
  define: MetricDefinitions,
): Events<"authDecided" | "requestRefused"> {
  const denials = new LabelSet(["reason"], AUTH_REFUSALS);
  const allowed = AUTH_REFUSALS.length;
  const skipped = allowed + 1;
  const wouldDeny = skipped + 1;
  const labels = [
    ...AUTH_REFUSALS.map((reason) => ["denied", reason]),
    ["allowed", "ok"],
    ["skipped", "ok"],
    ...AUTH_REFUSALS.map((reason) => ["would_deny", reason]),
  ];
  const decisions = define.counter(
    "auth_decisions_total",
    "Authorization decisions, by result and reason.",
    new LabelSet(["result", "reason"], labels),
  );
  return {
    authDecided(result, reason) {
      if (result === "allowed") decisions.add(allowed);
      else if (result === "skipped") decisions.add(skipped);
      else {
        const denial = denials.indexOf(reason);
        if (denial !== undefined) decisions.add(result === "denied" ? denial : wouldDeny + denial);
      }
    },
    requestRefused: define.words(
      "requests_rejected_total",
      "Connections and requests that were refused or cut off.",
      { reason: REFUSAL_REASONS },
    ),
  };
}

export function upstreamMetrics(
  define: MetricDefinitions,
  upstreams: LabelSet,
): Events<
  "upstreamAnswered" | "upstreamFailed" | "upstreamRetried" | "targetLeftOut" | "targetLookedUp"
> {
  const answersHelp = "Responses of the backends.";
  const answers = define.codes("upstream_requests_total", answersHelp, upstreams);
  const durations = define.durations(
    "upstream_response_duration_seconds",
    "Time from dispatch until the first byte of a backend's response.",
    REQUEST_BUCKETS,
    upstreams,
  );
  const events = {
    upstreamFailed: define.table(
      "upstream_errors_total",
      "Requests that a backend failed to answer.",
      upstreams,
      { reason: UPSTREAM_ERROR_REASONS },
    ),
    upstreamRetried: define.names(
      "upstream_retries_total",
      "Requests sent to a backend again.",
      upstreams,
    ),
    targetLeftOut: define.names(
      "upstream_targets_left_out_total",
      "Times that a target was left out.",
      upstreams,
    ),
  };
  const lookupsHelp = "Lookups of names of targets.";
  const result = ["success", "failure"] as const;
  const lookedUp = define.table("upstream_lookups_total", lookupsHelp, upstreams, { result });
  return {
    ...events,
    upstreamAnswered(upstream, code, seconds) {
      const index = upstreams.indexOf(upstream);
      if (index === undefined) return;
      answers.add(index, code);
      durations.record(index, seconds);
    },
    targetLookedUp: (upstream, found) => lookedUp(upstream, found ? "success" : "failure"),
  };
}

export function mirrorMetrics(
  define: MetricDefinitions,
  mirrors: LabelSet,
): Events<"requestMirrored"> {
  const help = "Copies of requests to a mirror, by result.";
  return {
    requestMirrored: define.table("mirrored_requests_total", help, mirrors, {
      result: MIRROR_RESULTS,
    }),
  };
}

/** Counts what else clients do: connections, tokens, logins, streams. */
export function clientMetrics(
  define: MetricDefinitions,
): Events<"connectionsPostponed" | "tokenCache" | "tokenIssued" | "loginFinished" | "streamEnded"> {
  const connectionsPostponed = define.words(
    "connections_postponed_total",
    "Connections delayed because their client used too much time.",
    { kind: POSTPONED },
  );
  const cache = define.counter(
    "token_cache_requests_total",
    "Lookups in the cache of verified tokens, by result.",
    new LabelSet(["result"], ["hit", "miss"]),
  );
  const issued = define.counter("tokens_issued_total", "Tokens signed.");
  const login = define.words("logins_total", "Login attempts.", { result: LOGIN_RESULTS });
  const durationHelp = "Duration of login attempts.";
  const durations = define.durations("login_duration_seconds", durationHelp, LOGIN_BUCKETS);
  return {
    connectionsPostponed,
    tokenCache: (result) => cache.add(result === "hit" ? 0 : 1),
    tokenIssued: () => issued.add(0),
    loginFinished(result, seconds) {
      login(result);
      durations.record(0, seconds);
    },
    streamEnded: define.words(
      "streams_ended_total",
      "Requests and WebSockets ended because the caller is no longer allowed.",
      { reason: STREAM_ENDS },
    ),
  };
}
