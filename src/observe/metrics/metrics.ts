import { AggregatorRegistry, collectDefaultMetrics, Registry } from "prom-client";
import type { Observer } from "../../core/observer.ts";
import type { RemoteCheckName } from "../../core/remote-check.ts";
import { systemClock, type Clock } from "../../lib/clock.ts";
import { MetricDefinitions } from "./define-metrics.ts";
import { measureEventLoop, NEVER_MS } from "./event-loop-lag.ts";
import {
  clientMetrics,
  decisionMetrics,
  mirrorMetrics,
  requestMetrics,
  upstreamMetrics,
} from "./event-metrics.ts";
import {
  defineGauges,
  defineIssuers,
  defineLoads,
  defineReloads,
  defineTargets,
  type GaugeSetters,
  GaugeSources,
} from "./gauges.ts";
import { OWN_ROUTES } from "./label-words.ts";
import { openMetrics } from "./open-metrics.ts";
import { LabelSet, type Sample } from "./series.ts";
import { remoteMetrics, sharedStateMetrics, storeMetrics } from "./server-metrics.ts";

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
  const { version, clock = systemClock, logLinesDropped = () => 0 } = options;
  const define = new MetricDefinitions();
  const gauges = new GaugeSources();
  const routes = new LabelSet(["route"], [...options.routes, ...OWN_ROUTES]);
  const upstreams = new LabelSet(["upstream"], options.upstreams);
  const stores = new LabelSet(["store"], options.stores ?? []);
  const mirrors = new LabelSet(["upstream"], options.mirrors ?? []);
  const checks = new LabelSet(["kind", "name"], valuesOf(options.checks));

  const requests = requestMetrics(define, routes);
  const decisions = decisionMetrics(define);
  const droppedHelp = "Log lines dropped because the reader was too slow.";
  define.readCounter("log_lines_dropped_total", droppedHelp, logLinesDropped);
  const backends = upstreamMetrics(define, upstreams);
  defineLoads(define, upstreams, gauges);
  const observer: Observer = {
    ...requests.events,
    ...decisions,
    ...backends,
    ...storeMetrics(define, stores, gauges),
    ...mirrorMetrics(define, mirrors),
    ...remoteMetrics(define, checks),
    ...clientMetrics(define),
    ...sharedStateMetrics(define, gauges),
  };
  define.gauge("http_requests_in_flight", "Requests in progress.", "sum", requests.inFlight);
  defineGauges(define, gauges);
  defineIssuers(define, gauges);
  defineTargets(define, gauges);
  const setters = defineReloads(define, clock.now());
  const build: Sample = [{ version, node: process.versions.node }, 1];
  const buildHelp = "Always 1; the labels describe the running version.";
  define.gauge("build_info", buildHelp, "first", () => [build], ["version", "node"]);
  return {
    ...observer,
    ...setters,
    gauges,
    add(series) {
      routes.add(series.routes);
      upstreams.add(series.upstreams);
      stores.add(series.stores ?? []);
      checks.add(valuesOf(series.checks));
      mirrors.add(series.mirrors ?? []);
    },
    ...expositionOf(define.registry, processRegistry(options), requests.exemplars),
  };
}

function valuesOf(checks: MetricsOptions["checks"] = []): string[][] {
  return checks.map(({ kind, name }) => [kind, name]);
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

function processRegistry(options: Pick<MetricsOptions, "process">): Registry {
  const registry = new Registry();
  if (options.process === false) return registry;
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: NEVER_MS });
  measureEventLoop(registry);
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  return registry;
}
