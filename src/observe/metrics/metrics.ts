import { AggregatorRegistry, collectDefaultMetrics, Registry } from "prom-client";
import type { Observer } from "../../core/observer.ts";
import type { RemoteCheckName } from "../../core/remote-check.ts";
import { systemClock, type Clock } from "../../lib/clock.ts";
import { connectionMetrics } from "./connection-metrics.ts";
import { externalCounter, type DefineMetric } from "./counters.ts";
import { measureEventLoop, NEVER_MS } from "./event-loop-lag.ts";
import { registerGauges, type GaugeSetters, type GaugeSources } from "./gauges.ts";
import { loginMetrics } from "./login-metrics.ts";
import { mirrorMetrics } from "./mirror-metrics.ts";
import { openMetrics } from "./open-metrics.ts";
import { remoteMetrics } from "./remote-metrics.ts";
import { requestMetrics } from "./request-metrics.ts";
import { streamMetrics } from "./stream-metrics.ts";
import { sharedStateMetrics } from "./shared-state-metrics.ts";
import { storeMetrics } from "./store-metrics.ts";
import { upstreamMetrics } from "./upstream-metrics.ts";

export interface MetricsOptions {
  /** Names of the configured routes; those of our own endpoints and `none` are added. */
  readonly routes: readonly string[];
  readonly upstreams: readonly string[];
  /** Names of the user stores. */
  readonly stores?: readonly string[];
  /** The checks by other servers; default: none. */
  readonly checks?: readonly RemoteCheckName[];
  /** Names of the upstreams to which requests are mirrored; default: none. */
  readonly mirrors?: readonly string[];
  readonly version: string;
  readonly clock?: Clock;
  /** Whether to expose the metrics of the process (`process_*`, `nodejs_*`); only one of several threads should. */
  readonly process?: boolean;
  /** Returns the number of log lines lost so far; 0 in a thread whose lines another thread writes. */
  readonly logLinesDropped?: () => number;
}

/** Counts what the observer reports, and exposes it to Prometheus. */
export interface Metrics extends Observer, GaugeSetters {
  /** Adds the routes, upstreams, user stores and checks of a new configuration. The series of removed ones stay. */
  add(series: Pick<MetricsOptions, "routes" | "upstreams" | "stores" | "checks" | "mirrors">): void;
  /** The sources of gauges. Each returns an initial value, mostly 0, until it is set. */
  readonly gauges: GaugeSources;
  /** The exposition in the format of `contentType`. */
  text(): Promise<string>;
  /** The combined exposition of this thread and others, given the `json()` of each. */
  textWith(threads: readonly (readonly object[])[]): Promise<string>;
  readonly contentType: string;
  /** Like `text`, in OpenMetrics with trace ids as exemplars; undefined until this thread has traced a request. */
  openText(): Promise<string> | undefined;
  /** The metrics of this thread as objects that can be posted, without those of the process. */
  json(): Promise<object[]>;
}

/**
 * Gauges of prom-client that are named like counters, which `promtool check metrics` rejects. Each is merely the sum of
 * another gauge.
 */
const MISNAMED = [
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
];

/** Creates all metrics, in a separate registry. Every series that is known in advance exists at 0 from the start. */
export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  const ofProcess = processRegistry(options);
  const define = definingIn(registry);

  const { inFlight, addRoutes, exemplars, ...requests } = requestMetrics(define, options.routes);
  const gauges = unsetGauges();
  showDroppedLines(define, options);
  const { addUpstreams, ...upstreams } = upstreamMetrics(define, options.upstreams, (upstream) =>
    gauges.upstreamLoad(upstream),
  );
  const { addStores, ...stores } = storeMetrics(define, options.stores ?? [], (store) =>
    gauges.storeState(store),
  );
  const { addMirrors, ...mirrored } = mirrorMetrics(define, options.mirrors ?? []);
  const { addChecks, ...remote } = remoteMetrics(define, options.checks ?? []);
  return {
    ...requests,
    ...connectionMetrics(define),
    ...loginMetrics(define),
    ...upstreams,
    ...stores,
    ...streamMetrics(define),
    ...sharedStateMetrics(define, () => gauges.sharedState()),
    ...remote,
    ...mirrored,
    add(series) {
      addRoutes(series.routes);
      addUpstreams(series.upstreams);
      addStores(series.stores ?? []);
      addChecks(series.checks ?? []);
      addMirrors(series.mirrors ?? []);
    },
    ...registerGauges(define, {
      version: options.version,
      startedMs: (options.clock ?? systemClock).now(),
      sources: gauges,
      inFlight,
    }),
    gauges,
    ...expositionOf(registry, ofProcess, exemplars),
  };
}

/** Returns the expositions of a registry, combined with that of the process. */
function expositionOf(
  registry: Registry,
  ofProcess: Registry,
  exemplars: Parameters<typeof openMetrics>[1],
): Pick<Metrics, "text" | "openText" | "textWith" | "contentType" | "json"> {
  const text = async (): Promise<string> =>
    (await ofProcess.metrics()) + (await registry.metrics());
  return {
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

function definingIn(registry: Registry): DefineMetric {
  return (name, help, ...labelNames) => ({
    registry,
    name: `sallyport_${name}`,
    help,
    labelNames,
  });
}

function showDroppedLines(
  define: DefineMetric,
  { logLinesDropped = () => 0 }: Pick<MetricsOptions, "logLinesDropped">,
): void {
  const help = "Log lines dropped because the reader was too slow.";
  externalCounter(define("log_lines_dropped_total", help), logLinesDropped);
}

function processRegistry(options: Pick<MetricsOptions, "process">): Registry {
  const registry = new Registry();
  if (options.process === false) return registry;
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: NEVER_MS });
  measureEventLoop(registry);
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  return registry;
}

function unsetGauges(): GaugeSources {
  return {
    tokenCacheEntries: () => 0,
    bufferedBytes: () => 0,
    loginQueueLength: () => 0,
    draining: () => false,
    revocationsWritable: () => true,
    workers: () => ({ count: 0, alive: 0 }),
    signingKey: () => undefined,
    assertionKey: () => undefined,
    upstreamLoad: () => ({ inFlight: 0, waiting: 0, leftOut: 0, targets: 0 }),
    targets: async () => [],
    issuers: () => [],
    sharedState: () => undefined,
    storeState: () => ({ connections: undefined, outdated: undefined }),
  };
}
