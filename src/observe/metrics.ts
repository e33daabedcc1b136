import { AggregatorRegistry, collectDefaultMetrics, Registry } from "prom-client";
import type { Observer } from "../core/observer.ts";
import { systemClock, type Clock } from "../lib/clock.ts";
import { keptCounter, type Introduce } from "./counters.ts";
import { registerGauges, type GaugeSetters, type GaugeSources } from "./gauges.ts";
import { loginMetrics } from "./login-metrics.ts";
import { openMetrics } from "./open-metrics.ts";
import { requestMetrics } from "./request-metrics.ts";
import { upstreamMetrics } from "./upstream-metrics.ts";

export interface MetricsOptions {
  /** Names of the configured routes; those of our own endpoints and `none` are added. */
  readonly routes: readonly string[];
  readonly upstreams: readonly string[];
  readonly version: string;
  readonly clock?: Clock;
  /** Whether the metrics of the process (`process_*`, `nodejs_*`) are shown; on one thread of several only. */
  readonly process?: boolean;
  /** Lines of the log that were lost so far; 0 on a thread whose lines another one writes. */
  readonly logLinesDropped?: () => number;
}

/** Counts what the observer is told, and shows it to Prometheus. */
export interface Metrics extends Observer, GaugeSetters {
  /** Counts for routes and upstreams that a new configuration brings; the series of those that are gone stay. */
  add(series: Pick<MetricsOptions, "routes" | "upstreams">): void;
  /** Where the gauges are read from that others keep; each gives 0 until it is set. */
  readonly gauges: GaugeSources;
  /** The exposition, in the format of `contentType`. */
  text(): Promise<string>;
  /** The exposition of what this thread and others counted; theirs is the `json()` of each. */
  textWith(threads: readonly (readonly object[])[]): Promise<string>;
  readonly contentType: string;
  /** The same as OpenMetrics with trace ids as exemplars; undefined as long as this thread has traced no request. */
  openText(): Promise<string> | undefined;
  /** What this thread counted, as objects that can be posted; without the metrics of the process. */
  json(): Promise<object[]>;
}

/** Gauges of prom-client named like counters, which `promtool check metrics` objects to. Each only adds up another. */
const MISNAMED = [
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
];

/** All metrics, in a registry of their own. Every series that can be named in advance exists at 0 from the start. */
export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  const ofProcess = new Registry();
  if (options.process !== false) {
    collectDefaultMetrics({ register: ofProcess });
    for (const name of MISNAMED) ofProcess.removeSingleMetric(name);
  }
  const introduce: Introduce = (name, help, ...labelNames) => ({
    registry,
    name: `sallyport_${name}`,
    help,
    labelNames,
  });

  const { inFlight, addRoutes, exemplars, ...requests } = requestMetrics(introduce, options.routes);
  const gauges: GaugeSources = {
    tokenCacheEntries: () => 0,
    loginQueueLength: () => 0,
    draining: () => false,
    signingKey: () => undefined,
    upstreamLoad: () => ({ inFlight: 0, waiting: 0 }),
  };
  keptCounter(
    introduce(
      "log_lines_dropped_total",
      "Lines of the log that were lost: nobody took them in time.",
    ),
    options.logLinesDropped ?? (() => 0),
  );
  const { addUpstreams, ...upstreams } = upstreamMetrics(introduce, options.upstreams, (upstream) =>
    gauges.upstreamLoad(upstream),
  );
  const text = async (): Promise<string> =>
    (await ofProcess.metrics()) + (await registry.metrics());
  return {
    ...requests,
    ...loginMetrics(introduce),
    ...upstreams,
    add(series) {
      addRoutes(series.routes);
      addUpstreams(series.upstreams);
    },
    ...registerGauges(introduce, {
      version: options.version,
      startedMs: (options.clock ?? systemClock).now(),
      sources: gauges,
      inFlight,
    }),
    gauges,
    text,
    openText: () =>
      exemplars.size === 0 ? undefined : text().then((written) => openMetrics(written, exemplars)),
    textWith: async (threads) => {
      const all = [await registry.getMetricsAsJSON(), ...threads];
      return (await ofProcess.metrics()) + (await AggregatorRegistry.aggregate(all).metrics());
    },
    contentType: registry.contentType,
    json: () => registry.getMetricsAsJSON(),
  };
}
