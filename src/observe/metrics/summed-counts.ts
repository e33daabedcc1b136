import { AggregatorRegistry } from "prom-client";

/** The result of `Metrics.json()`. */
export type MetricObjects = readonly object[];

/** The types that only grow. A gauge is meaningless once its thread has ended. */
const COUNTS = new Set<unknown>(["counter", "histogram"]);

/** Adds up all metrics of several threads, gauges too. */
export async function totalsOf(parts: readonly MetricObjects[]): Promise<MetricObjects> {
  return AggregatorRegistry.aggregate([...parts]).getMetricsAsJSON();
}

/** Adds up the counts of several threads, or of several lives of one thread. Leaves gauges out. */
export async function summedCounts(parts: readonly MetricObjects[]): Promise<MetricObjects> {
  const counts = parts.map((part) =>
    part.filter((each) => "type" in each && COUNTS.has(each.type)),
  );
  return AggregatorRegistry.aggregate(counts).getMetricsAsJSON();
}
