import { Gauge } from "prom-client";
import type { Observer } from "../../core/observer.ts";
import { REFUSAL_REASONS } from "../../core/request/outcome.ts";
import {
  type CodeCounter,
  codeCounter,
  increment,
  slotCounter,
  slotsOf,
  type DefineMetric,
} from "./counters.ts";
import {
  COMMON_METHODS,
  AUTH_REFUSALS,
  METHODS,
  OWN_ROUTES,
  SERVER_ERRORS,
} from "./label-words.ts";
import { LatencyHistogram, REQUEST_BUCKETS } from "./latency-histogram.ts";
import type { Exemplar } from "./open-metrics.ts";

type RequestCounts = Pick<
  Observer,
  | "requestStarted"
  | "requestFinished"
  | "authDecided"
  | "requestRefused"
  | "webSocketOpened"
  | "webSocketClosed"
>;

/** Metrics of the client side. An unknown route counts as `none`. */
export interface RequestMetrics extends RequestCounts {
  /** The number of requests in progress. */
  inFlight(): number;
  /** Examples of traced requests, by the series of the bucket. */
  readonly exemplars: ReadonlyMap<string, Exemplar>;
  /** Adds routes of a new configuration. */
  addRoutes(names: readonly string[]): void;
}

type RouteLabels = readonly { readonly route: string }[];

export function requestMetrics(
  define: DefineMetric,
  configuredRoutes: readonly string[],
): RequestMetrics {
  const routes = [...new Set([...configuredRoutes, ...OWN_ROUTES])].map((route) => ({ route }));
  const routeSlots = new Map(routes.map(({ route }, slot) => [route, slot]));
  const noRoute = routeSlots.get("none") ?? 0;
  const slotOf = (route: string): number => routeSlots.get(route) ?? noRoute;
  const methodSlots = slotsOf(METHODS);
  const otherMethod = methodSlots.get("other") ?? 0;
  const answers = answerCounter(define, routes);
  const durations = durationHistogram(define, routes);
  const webSockets = webSocketGauge(define, routes);
  let inFlight = 0;
  return {
    ...decisionCounts(define),
    ...refusalCounts(define),
    webSocketOpened: (route) => increment(webSockets, slotOf(route)),
    webSocketClosed: (route) => increment(webSockets, slotOf(route), -1),
    inFlight: () => inFlight,
    exemplars: durations.exemplars,
    addRoutes(names) {
      const more = names.filter((name) => !routeSlots.has(name)).map((route) => ({ route }));
      for (const labels of more) {
        routeSlots.set(labels.route, routes.length);
        routes.push(labels);
        webSockets.push(0);
      }
      answers.add(byMethod(more));
      durations.add(more);
    },
    requestStarted() {
      inFlight++;
    },
    requestFinished({ route, method, status, protocol, durationMs, traceId }) {
      inFlight--;
      const row = slotOf(route);
      answers.count(row * METHODS.length + (methodSlots.get(method) ?? otherMethod), status);
      // The lifetime of a WebSocket is not a response time. Over HTTP/2 it opens with 200.
      const lifetime = status === 101 || (status === 200 && protocol === "websocket");
      if (!lifetime) durations.record(row, durationMs / 1000, traceId);
    },
  };
}

function byMethod(routes: RouteLabels) {
  return routes.flatMap((labels) => METHODS.map((method) => ({ ...labels, method })));
}

function answerCounter(define: DefineMetric, routes: RouteLabels): CodeCounter {
  return codeCounter(
    define("http_requests_total", "Requests answered.", "route", "method", "code"),
    byMethod(routes),
    SERVER_ERRORS,
    ({ method = "" }) => COMMON_METHODS.includes(method),
  );
}

function durationHistogram(define: DefineMetric, routes: RouteLabels): LatencyHistogram {
  const help = "Time from the head of a request until its response was written.";
  const head = define("http_request_duration_seconds", help, "route");
  return new LatencyHistogram(head, REQUEST_BUCKETS, routes);
}

/** @returns the number of open WebSockets of each route. The caller may append routes. */
function webSocketGauge(define: DefineMetric, routes: RouteLabels): number[] {
  const open = routes.map(() => 0);
  const head = define("websocket_connections", "Open WebSockets.", "route");
  const { registry, ...rest } = head;
  new Gauge({
    ...rest,
    registers: [registry],
    collect() {
      for (const [slot, labels] of routes.entries()) this.set(labels, open[slot] ?? 0);
    },
  });
  return open;
}

function decisionCounts(define: DefineMetric): Pick<Observer, "authDecided"> {
  const denialSlots = slotsOf(AUTH_REFUSALS);
  const allowedSlot = AUTH_REFUSALS.length;
  const skippedSlot = AUTH_REFUSALS.length + 1;
  const firstWouldDenySlot = AUTH_REFUSALS.length + 2;
  const decisions = slotCounter(
    define(
      "auth_decisions_total",
      "Authorization decisions, by result and reason.",
      "result",
      "reason",
    ),
    [
      ...AUTH_REFUSALS.map((reason) => ({ result: "denied", reason })),
      { result: "allowed", reason: "ok" },
      { result: "skipped", reason: "ok" },
      ...AUTH_REFUSALS.map((reason) => ({ result: "would_deny", reason })),
    ],
  );
  return {
    authDecided(result, reason) {
      if (result === "allowed") increment(decisions.counts, allowedSlot);
      else if (result === "skipped") increment(decisions.counts, skippedSlot);
      else {
        const slot = denialSlots.get(reason);
        const first = result === "would_deny" ? firstWouldDenySlot : 0;
        increment(decisions.counts, slot === undefined ? undefined : first + slot);
      }
    },
  };
}

function refusalCounts(define: DefineMetric): Pick<Observer, "requestRefused"> {
  const slots = slotsOf(REFUSAL_REASONS);
  const refusals = slotCounter(
    define(
      "requests_rejected_total",
      "Connections and requests that were refused or cut off.",
      "reason",
    ),
    REFUSAL_REASONS.map((reason) => ({ reason })),
  );
  return { requestRefused: (reason) => increment(refusals.counts, slots.get(reason)) };
}
