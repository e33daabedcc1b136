import { AggregatorRegistry } from "prom-client";
import { ERRORS } from "../../core/request/errors.ts";
import { AUTH_REASONS } from "../../core/request/outcome.ts";

/** Closed sets of label values, where these differ from the words in `core/request/outcome.ts`. */

export const AUTH_REFUSALS: readonly string[] = AUTH_REASONS.filter((reason) => reason !== "ok");

/** The `route` labels of our own endpoints, and of requests without a route. */
export const OWN_ROUTES: readonly string[] = [
  ...["authenticate", "logout", "version", "jwks", "preflight", "none"],
  ...["sign_in", "sign_out", "browser_session"],
];

/** All other methods count as `other`, because clients can choose any method. */
export const METHODS: readonly string[] = [
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
  "other",
];

/** Methods whose rows expose `SERVER_ERRORS` from the start; those of other methods do after their first use. */
const COMMON_METHODS: ReadonlySet<string | number> = new Set(["GET", "POST"]);

/**
 * The 5xx statuses of Sallyport's own responses. Their series exist at 0 from the start: a rate needs two samples, so
 * it would miss an outage whose first error creates the series.
 */
const SERVER_ERRORS: readonly number[] = [
  ...new Set(Object.values(ERRORS).map(({ status }): number => status)),
].filter((status) => status >= 500);

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

/** Returns the labels of all series of a metric with these sets of labels. */
export function crossed(sets: readonly LabelSet[]): Labels[] {
  return sets.reduce<Labels[]>(
    (all, { labels }) => all.flatMap((some) => labels.map((more) => ({ ...some, ...more }))),
    [{}],
  );
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

const CODES = 600;

/**
 * The counts of responses by series and status code. A series exposes the codes that have occurred. Codes outside
 * 100–599 count as `other`, so that a backend cannot add series without limit.
 */
export class CodeCounts {
  readonly #codes: (Float64Array | undefined)[] = [];

  add(index: number, code: number): void {
    while (this.#codes.length <= index) this.#codes.push(undefined);
    const codes = (this.#codes[index] ??= new Float64Array(CODES));
    const slot = Number.isInteger(code) && code >= 100 && code < CODES ? code : 0;
    codes[slot] = (codes[slot] ?? 0) + 1;
  }

  samples(series: readonly Labels[]): Sample[] {
    return series.flatMap((labels, index) => {
      const codes = [...(this.#codes[index] ?? [])];
      const { method = "GET" } = labels;
      const foreseen = codes.length > 0 || COMMON_METHODS.has(method) ? SERVER_ERRORS : [];
      return [
        ...foreseen.map((code): Sample => [{ ...labels, code }, 0]),
        ...codes.flatMap((count, code): Sample[] =>
          count > 0 ? [[{ ...labels, code: code === 0 ? "other" : code }, count]] : [],
        ),
      ];
    });
  }
}
