/** The metrics that count the events of requests. An unknown upstream is not counted, an unknown route as `none`. */
import { Histogram, type Registry } from "prom-client";
import { type Observer, POSTPONED } from "../../core/observer.ts";
import {
  AUTH_REASONS,
  LOGIN_RESULTS,
  REFUSAL_REASONS,
  STORE_RESULTS,
  STREAM_ENDS,
  UPSTREAM_ERROR_REASONS,
} from "../../core/request/outcome.ts";
import { REMOTE_CHECK_RESULTS } from "../../core/remote-check.ts";
import { SHARED_OPERATIONS } from "../../core/shared-parts.ts";
import { TOKEN_CACHE_RESULTS } from "../../core/request/token-verifier.ts";
import { MIRROR_RESULTS } from "../../core/route/route.ts";
import type { MetricDefinitions } from "./define-metrics.ts";
import { Counts, type Labels, LabelSet } from "./series.ts";
import { defineLoads, type GaugeSources, type StoreState } from "./gauges.ts";
import type { Exemplar } from "./metrics.ts";

const AUTH_REFUSALS: readonly string[] = AUTH_REASONS.filter((reason) => reason !== "ok");

/** All other methods count as `other`, because clients can choose any method. */
export const METHODS: readonly string[] = [
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
  "other",
];

/** Upper bounds in seconds: Prometheus' defaults, and two lower ones for responses without a backend. */
const REQUEST_BUCKETS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

/** Upper bounds in seconds; a password hash alone takes tens of milliseconds. */
const LOGIN_BUCKETS: readonly number[] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

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

type Events<Name extends keyof Observer> = Pick<Observer, Name>;

function requestMetrics(define: MetricDefinitions, routes: LabelSet) {
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

function decisionMetrics(define: MetricDefinitions): Events<"authDecided" | "requestRefused"> {
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

function upstreamMetrics(
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

/** Counts what else clients do: connections, tokens, logins, streams. */
function clientMetrics(
  define: MetricDefinitions,
): Events<"connectionsPostponed" | "tokenCache" | "tokenIssued" | "loginFinished" | "streamEnded"> {
  const connectionsPostponed = define.words(
    "connections_postponed_total",
    "Connections delayed because their client used too much time.",
    { kind: POSTPONED },
  );
  const tokenCache = define.words(
    "token_cache_requests_total",
    "Lookups in the cache of verified tokens, by result.",
    { result: TOKEN_CACHE_RESULTS },
  );
  const issued = define.counter("tokens_issued_total", "Tokens signed.");
  const login = define.words("logins_total", "Login attempts.", { result: LOGIN_RESULTS });
  const durationHelp = "Duration of login attempts.";
  const durations = define.durations("login_duration_seconds", durationHelp, LOGIN_BUCKETS);
  return {
    connectionsPostponed,
    tokenCache,
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

/** Counts what user stores answer. Unknown stores are not counted; the same goes for the checks of other servers. */
function storeMetrics(
  define: MetricDefinitions,
  stores: LabelSet,
  sources: GaugeSources,
): Events<"storeAnswered" | "outdatedHashUsed"> {
  const answered = define.table(
    "user_store_requests_total",
    "Password checks by a user store.",
    stores,
    { result: STORE_RESULTS },
  );
  const durationsHelp = "Duration of these checks.";
  const durations = define.durations(
    "user_store_request_duration_seconds",
    durationsHelp,
    LOGIN_BUCKETS,
    stores,
  );
  const outdatedHashUsed = define.names(
    "logins_with_outdated_hash_total",
    "Logins by an outdated password hash.",
    stores,
  );
  const gauge = (name: string, help: string, part: keyof StoreState): void => {
    const read = () => stores.samples((store) => sources.storeState(store)[part]);
    define.gauge(name, help, "sum", read, stores.names);
  };
  gauge("user_store_connections", "Open connections to a user store.", "connections");
  gauge("users_with_outdated_hash", "Users with an outdated password hash.", "outdated");
  return {
    outdatedHashUsed,
    storeAnswered(store, result, seconds) {
      answered(store, result);
      durations.record(stores.indexOf(store), seconds);
    },
  };
}

/** @param checks the kind and the name of each. */
function remoteMetrics(define: MetricDefinitions, checks: LabelSet): Events<"remoteChecked"> {
  const checked = define.table("remote_checks_total", "Checks by other servers.", checks, {
    result: REMOTE_CHECK_RESULTS,
  });
  const durations = define.durations(
    "remote_check_duration_seconds",
    "Duration of these checks.",
    REQUEST_BUCKETS,
    checks,
  );
  return {
    remoteChecked({ kind, name }, result, seconds) {
      const check = `${kind} ${name}`;
      checked(check, result);
      if (seconds !== undefined) durations.record(checks.indexOf(check), seconds);
    },
  };
}

/** Only the main thread uses the state server; the others never count anything. */
function sharedStateMetrics(
  define: MetricDefinitions,
  sources: GaugeSources,
): Events<"sharedStateAsked"> {
  const operations = new LabelSet(["operation"], SHARED_OPERATIONS);
  const asked = define.table(
    "shared_state_operations_total",
    "Requests to the state server of all replicas.",
    operations,
    { result: ["ok", "failed"] },
  );
  const durations = define.durations(
    "shared_state_operation_duration_seconds",
    "Duration of these requests.",
    REQUEST_BUCKETS,
    operations,
  );
  define.readCounter(
    "shared_state_lost_attempts_total",
    "Login attempts not published to other replicas.",
    () => sources.sharedState()?.lost ?? 0,
  );
  define.gauge("shared_state_up", "1 while the state server can be used.", "max", () => {
    const current = sources.sharedState();
    return current && Number(current.up);
  });
  return {
    sharedStateAsked(operation, successful, seconds) {
      asked(operation, successful ? "ok" : "failed");
      if (seconds !== undefined) durations.record(operations.indexOf(operation), seconds);
    },
  };
}

/** The names that label what is counted. */
type LabelSets = Readonly<
  Record<"routes" | "upstreams" | "stores" | "mirrors" | "checks", LabelSet>
>;

/** Defines the metrics of all events, in the order in which they are written. */
export function eventMetrics(
  define: MetricDefinitions,
  { routes, upstreams, stores, mirrors, checks }: LabelSets,
  gauges: GaugeSources,
  logLinesDropped: () => number,
) {
  const { events, inFlight, exemplars } = requestMetrics(define, routes);
  const decisions = decisionMetrics(define);
  const droppedHelp = "Log lines dropped because the reader was too slow.";
  define.readCounter("log_lines_dropped_total", droppedHelp, logLinesDropped);
  const backends = upstreamMetrics(define, upstreams);
  defineLoads(define, upstreams, gauges);
  const mirrorHelp = "Copies of requests to a mirror, by result.";
  const observer: Observer = {
    ...events,
    ...decisions,
    ...backends,
    ...storeMetrics(define, stores, gauges),
    requestMirrored: define.table("mirrored_requests_total", mirrorHelp, mirrors, {
      result: MIRROR_RESULTS,
    }),
    ...remoteMetrics(define, checks),
    ...clientMetrics(define),
    ...sharedStateMetrics(define, gauges),
  };
  return { observer, inFlight, exemplars };
}
