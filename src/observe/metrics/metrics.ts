import { monitorEventLoopDelay } from "node:perf_hooks";
import { AggregatorRegistry, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { Observer } from "../../core/observer.ts";
import type { RemoteCheckName } from "../../core/remote-check.ts";
import { type Clock, LONGEST_TIMER_MS, systemClock } from "../../lib/clock.ts";
import { MetricDefinitions } from "./define-metrics.ts";
import { eventMetrics } from "./event-metrics.ts";
import { defineGauges, GaugeSources } from "./gauges.ts";
import { LabelSet, OWN_ROUTES, type Sample } from "./series.ts";

/** The resolution for Node 24, which cannot measure each turn, in milliseconds. */
const RESOLUTION_MS = 10;

type LoopHistogram = ReturnType<typeof monitorEventLoopDelay>;

const STATISTICS: readonly (readonly [
  name: string,
  help: string,
  (histogram: LoopHistogram) => number,
])[] = [
  ["min", "The minimum recorded event loop delay.", ({ min }) => min],
  ["max", "The maximum recorded event loop delay.", ({ max }) => max],
  ["mean", "The mean of the recorded event loop delays.", ({ mean }) => mean],
  ["stddev", "The standard deviation of the recorded event loop delays.", ({ stddev }) => stddev],
  ["p50", "The 50th percentile of the recorded event loop delays.", (all) => all.percentile(50)],
  ["p90", "The 90th percentile of the recorded event loop delays.", (all) => all.percentile(90)],
  ["p99", "The 99th percentile of the recorded event loop delays.", (all) => all.percentile(99)],
];

/**
 * Replaces prom-client's gauges `nodejs_eventloop_lag_…_seconds` with gauges of the same names that measure each turn
 * of the event loop, so that an idle process costs nothing. They cover the time since the previous scrape.
 */
function measureEventLoop(registry: Registry): void {
  const histogram = monitorEventLoopDelay({ samplePerIteration: true, resolution: RESOLUTION_MS });
  // Enabled within a turn: otherwise the first sample would be the wait until the next turn.
  setImmediate(() => histogram.enable());
  for (const [index, [statistic, help, read]] of STATISTICS.entries()) {
    const name = `nodejs_eventloop_lag_${statistic}_seconds`;
    registry.removeSingleMetric(name);
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(histogram.count === 0 ? 0 : read(histogram) / 1e9);
        // The gauges are read in this order.
        if (index === STATISTICS.length - 1) histogram.reset();
      },
    });
  }
}

interface MetricsOptions {
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
export interface Metrics extends Observer {
  /**
   * The configuration, or a file that it names, was reloaded. `atMs` is wall clock, in milliseconds since the epoch.
   */
  configReloaded(successful: boolean, atMs: number): void;
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

  const sets = { routes, upstreams, stores, mirrors, checks };
  const { observer, inFlight, exemplars } = eventMetrics(define, sets, gauges, logLinesDropped);
  define.gauge("http_requests_in_flight", "Requests in progress.", "sum", inFlight);
  const configReloaded = defineGauges(define, gauges, clock.now());
  const build: Sample = [{ version, node: process.versions.node }, 1];
  const buildHelp = "Always 1; the labels describe the running version.";
  define.gauge("build_info", buildHelp, "first", () => [build], ["version", "node"]);
  return {
    ...observer,
    configReloaded,
    gauges,
    add(series) {
      routes.add(series.routes);
      upstreams.add(series.upstreams);
      stores.add(series.stores ?? []);
      checks.add(valuesOf(series.checks));
      mirrors.add(series.mirrors ?? []);
    },
    ...expositionOf(define.registry, processRegistry(options), exemplars),
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
  // In effect disables the timer of prom-client's own histogram: one of 10 ms costs an idle process 4 ms of CPU time per second.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LONGEST_TIMER_MS });
  measureEventLoop(registry);
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  return registry;
}

/** A request that serves as an example of those in a bucket. */
export interface Exemplar {
  readonly traceId: string;
  /** In the unit of the buckets. */
  readonly value: number;
  /** Wall clock, milliseconds since the epoch. */
  readonly atMs: number;
}

/**
 * Converts Prometheus' text format to OpenMetrics 1.0, which supports exemplars: the names of counter families lose
 * `_total`, there are no empty lines, and an end mark follows. prom-client's own conversion renames its counters
 * permanently, so a registry could not serve both formats.
 *
 * @param exemplars the exemplars, by the series of a bucket as written in the text.
 */
function openMetrics(text: string, exemplars: ReadonlyMap<string, Exemplar>): string {
  const lines = text.split("\n").filter((line) => line !== "");
  const counters = new Set(
    lines.flatMap((line) => /^# TYPE (\w+)_total counter$/.exec(line)?.[1] ?? []),
  );
  const written = lines.map((line) => {
    const [, keyword, family = "", rest = ""] = /^# (HELP|TYPE) (\w+)_total (.*)$/.exec(line) ?? [];
    if (keyword !== undefined && counters.has(family)) return `# ${keyword} ${family} ${rest}`;
    const exemplar = exemplars.get(line.slice(0, line.lastIndexOf(" ")));
    return exemplar === undefined ? line : `${line} # ${exemplarText(exemplar)}`;
  });
  return `${[...written, "# EOF"].join("\n")}\n`;
}

function exemplarText({ traceId, value, atMs }: Exemplar): string {
  return `{trace_id="${traceId}"} ${value} ${(atMs / 1000).toFixed(3)}`;
}
