import { Gauge } from "prom-client";
import type { Observer } from "../core/observer.ts";
import { REJECTIONS } from "../core/outcome.ts";
import { codeCounter, countUp, slotCounter, slotsOf, type Introduce } from "./counters.ts";
import { DENIALS, METHODS, OWN_ROUTES } from "./label-words.ts";
import { LatencyHistogram, REQUEST_BUCKETS } from "./latency-histogram.ts";
import type { Exemplar } from "./open-metrics.ts";

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
  /** Traced requests that stand for their buckets, by the series of the bucket. */
  readonly exemplars: ReadonlyMap<string, Exemplar>;
  /** Counts for routes that were not configured before, too. */
  addRoutes(names: readonly string[]): void;
}

export function requestMetrics(
  introduce: Introduce,
  configuredRoutes: readonly string[],
): RequestMetrics {
  const byRoute = [...new Set([...configuredRoutes, ...OWN_ROUTES])].map((route) => ({ route }));
  const routeSlots = new Map(byRoute.map(({ route }, slot) => [route, slot]));
  const noRoute = routeSlots.get("none") ?? 0;
  const methodSlots = slotsOf(METHODS);
  const otherMethod = methodSlots.get("other") ?? 0;
  const denialSlots = slotsOf(DENIALS);
  const allowedSlot = DENIALS.length;
  const skippedSlot = DENIALS.length + 1;
  const firstWouldDenySlot = DENIALS.length + 2;
  const rejectionSlots = slotsOf(REJECTIONS);

  const byMethod = (routes: typeof byRoute) =>
    routes.flatMap((labels) => METHODS.map((method) => ({ ...labels, method })));
  const answers = codeCounter(
    introduce("http_requests_total", "Requests answered.", "route", "method", "code"),
    byMethod(byRoute),
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
      ...DENIALS.map((reason) => ({ result: "would_deny", reason })),
    ],
  );
  const rejections = slotCounter(
    introduce("requests_rejected_total", "What never became a request, or was cut off.", "reason"),
    REJECTIONS.map((reason) => ({ reason })),
  );
  const webSockets: number[] = byRoute.map(() => 0);
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
    exemplars: durations.exemplars,
    addRoutes(names) {
      const more = names.filter((name) => !routeSlots.has(name)).map((route) => ({ route }));
      for (const { route } of more) {
        routeSlots.set(route, byRoute.length);
        byRoute.push({ route });
        webSockets.push(0);
      }
      answers.add(byMethod(more));
      durations.add(more);
    },
    requestStarted() {
      inFlight++;
    },
    requestFinished(outcome) {
      inFlight--;
      const route = routeSlots.get(outcome.route) ?? noRoute;
      const method = methodSlots.get(outcome.method) ?? otherMethod;
      answers.count(route * METHODS.length + method, outcome.status);
      // How long a WebSocket stayed open says nothing about how fast we answer.
      if (outcome.status !== 101) {
        durations.record(route, outcome.durationMs / 1000, outcome.traceId);
      }
    },
    authDecided(result, reason) {
      if (result === "allowed") countUp(decisions.counts, allowedSlot);
      else if (result === "skipped") countUp(decisions.counts, skippedSlot);
      else {
        const slot = denialSlots.get(reason);
        const first = result === "would_deny" ? firstWouldDenySlot : 0;
        countUp(decisions.counts, slot === undefined ? undefined : first + slot);
      }
    },
    rejected(reason) {
      countUp(rejections.counts, rejectionSlots.get(reason));
    },
    webSocketOpened(route) {
      countUp(webSockets, routeSlots.get(route) ?? noRoute);
    },
    webSocketClosed(route) {
      countUp(webSockets, routeSlots.get(route) ?? noRoute, -1);
    },
  };
}
