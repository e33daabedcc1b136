import { Gauge } from "prom-client";
import type { Observer } from "../core/observer.ts";
import { codeCounter, countUp, slotCounter, slotsOf, type Introduce } from "./counters.ts";
import { DENIALS, METHODS, OWN_ROUTES, REJECTION_REASONS } from "./label-words.ts";
import { LatencyHistogram, REQUEST_BUCKETS } from "./latency-histogram.ts";

type RequestCounts = Pick<
  Observer,
  | "requestStarted"
  | "requestFinished"
  | "authDecided"
  | "rejected"
  | "webSocketOpened"
  | "webSocketClosed"
>;

/** What is counted of the clients' side. A route that was not named counts as `none`. */
export interface RequestMetrics extends RequestCounts {
  /** Requests begun and not yet finished. */
  inFlight(): number;
}

export function requestMetrics(
  introduce: Introduce,
  configuredRoutes: readonly string[],
): RequestMetrics {
  const routes = [...new Set([...configuredRoutes, ...OWN_ROUTES])];
  const byRoute = routes.map((route) => ({ route }));
  const routeSlots = slotsOf(routes);
  const noRoute = routeSlots.get("none") ?? 0;
  const methodSlots = slotsOf(METHODS);
  const otherMethod = methodSlots.get("other") ?? 0;
  const denialSlots = slotsOf(DENIALS);
  const allowedSlot = DENIALS.length;
  const skippedSlot = DENIALS.length + 1;
  const rejectionSlots = slotsOf(REJECTION_REASONS);

  const countAnswer = codeCounter(
    introduce("http_requests_total", "Requests answered.", "route", "method", "code"),
    byRoute.flatMap((labels) => METHODS.map((method) => ({ ...labels, method }))),
  );
  const durations = new LatencyHistogram(
    introduce(
      "http_request_duration_seconds",
      "From a request's head until its answer was handed over.",
      "route",
    ),
    REQUEST_BUCKETS,
    byRoute,
  );
  const decisions = slotCounter(
    introduce("auth_decisions_total", "Who was let through, and why.", "result", "reason"),
    [
      ...DENIALS.map((reason) => ({ result: "denied", reason })),
      { result: "allowed", reason: "ok" },
      { result: "skipped", reason: "ok" },
    ],
  );
  const rejections = slotCounter(
    introduce("requests_rejected_total", "What never became a request, or was cut off.", "reason"),
    REJECTION_REASONS.map((reason) => ({ reason })),
  );
  const webSockets = new Float64Array(routes.length);
  const { registry, ...webSocketHead } = introduce(
    "websocket_connections",
    "WebSockets that are open.",
    "route",
  );
  new Gauge({
    ...webSocketHead,
    registers: [registry],
    collect() {
      for (const [slot, labels] of byRoute.entries()) this.set(labels, webSockets[slot] ?? 0);
    },
  });
  let inFlight = 0;

  return {
    inFlight: () => inFlight,
    requestStarted() {
      inFlight++;
    },
    requestFinished(outcome) {
      inFlight--;
      const route = routeSlots.get(outcome.route) ?? noRoute;
      const method = methodSlots.get(outcome.method) ?? otherMethod;
      countAnswer(route * METHODS.length + method, outcome.status);
      // How long a WebSocket stayed open says nothing about how fast we answer.
      if (outcome.status !== 101) durations.record(route, outcome.durationMs / 1000);
    },
    authDecided(result, reason) {
      if (result === "allowed") countUp(decisions, allowedSlot);
      else if (result === "skipped") countUp(decisions, skippedSlot);
      else countUp(decisions, denialSlots.get(reason));
    },
    rejected(reason) {
      countUp(rejections, rejectionSlots.get(reason));
    },
    webSocketOpened(route) {
      countUp(webSockets, routeSlots.get(route) ?? noRoute);
    },
    webSocketClosed(route) {
      countUp(webSockets, routeSlots.get(route) ?? noRoute, -1);
    },
  };
}
