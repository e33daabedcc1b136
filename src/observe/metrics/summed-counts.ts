import { AggregatorRegistry } from "prom-client";

/** The result of `Metrics.json()`. */
export type MetricObjects = readonly object[];

/** The types of metrics that only grow. A gauge is meaningless once its thread has ended. */
const COUNTS = new Set<unknown>(["counter", "histogram"]);

/** Adds up all metrics of several threads, including gauges. */
export async function totalsOf(parts: readonly MetricObjects[]): Promise<MetricObjects> {
  return AggregatorRegistry.aggregate([...parts]).getMetricsAsJSON();
}

/** Adds up the counters and histograms of several threads, or of several lives of one thread. Omits gauges. */
export async function summedCounts(parts: readonly MetricObjects[]): Promise<MetricObjects> {
  const counts = parts.map((part) =>
    part.filter((each) => "type" in each && COUNTS.has(each.type)),
  );
  return AggregatorRegistry.aggregate(counts).getMetricsAsJSON();
}
