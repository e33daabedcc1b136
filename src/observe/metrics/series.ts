import { AggregatorRegistry } from "prom-client";

/** The `route` labels of our own endpoints, and of requests without a route. */
export const OWN_ROUTES: readonly string[] = [
  "authenticate",
  "logout",
  "version",
  "jwks",
  "preflight",
  "none",
  "sign_in",
  "sign_in_provider",
  "sign_out",
  "browser_session",
  "provider_logout",
  "resource_metadata",
];

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

export type Labels = Readonly<Record<string, string | number>>;
export type Sample = readonly [labels: Labels, value: number];

/**
 * The values of a label, or of several labels together: the words of a closed set, or names in the configuration, to
 * which a reload may add.
 */
export class LabelSet<Value extends string = string> {
  readonly names: readonly string[];
  readonly labels: Labels[] = [];
  readonly #indexes = new Map<string, number>();

  /** @param values a list for several labels. */
  constructor(names: readonly string[], values: readonly (Value | readonly string[])[]) {
    this.names = names;
    this.add(values);
  }

  /** Adds values after the existing ones. */
  add(values: readonly (Value | readonly string[])[]): void {
    for (const value of values) {
      const each = [value].flat();
      const key = each.join(" ");
      if (this.#indexes.has(key)) continue;
      this.#indexes.set(key, this.labels.length);
      this.labels.push(Object.fromEntries(this.names.map((name, i) => [name, each[i] ?? ""])));
    }
  }

  /** Returns the index of a value, or of several values with a space between; undefined if it is unknown. */
  indexOf(value: Value): number | undefined {
    return this.#indexes.get(value);
  }

  /** Returns a sample for each value for which `read` returns a number. */
  samples(read: (value: string) => number | undefined): Sample[] {
    return [...this.#indexes.keys()].flatMap((value, index): Sample[] => {
      const number = read(value);
      return number === undefined ? [] : [[this.labels[index] ?? {}, number]];
    });
  }
}

/**
 * The counts of a metric whose series are all known. prom-client reads them only on a scrape, because its own `inc`
 * hashes the labels.
 */
export class Counts {
  /** By series, up to the last one that was counted. */
  readonly #counts: number[] = [];

  /** Adds to a series, given by its index. Ignores an unknown one. */
  add(index: number | undefined, by = 1): void {
    if (index === undefined) return;
    while (this.#counts.length <= index) this.#counts.push(0);
    this.#counts[index] = (this.#counts[index] ?? 0) + by;
  }

  samples(series: readonly Labels[]): Sample[] {
    return series.map((labels, index) => [labels, this.#counts[index] ?? 0]);
  }
}
