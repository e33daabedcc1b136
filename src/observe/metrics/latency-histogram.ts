import { Histogram, type Registry } from "prom-client";
import type { Exemplar } from "./open-metrics.ts";
import type { Labels } from "./series.ts";

/** Upper bounds in seconds: Prometheus' defaults, and two lower ones for responses without a backend. */
export const REQUEST_BUCKETS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

/** Upper bounds in seconds; a password hash alone takes tens of milliseconds. */
export const LOGIN_BUCKETS: readonly number[] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

interface HistogramOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly registers: Registry[];
  readonly bounds: readonly number[];
  /** The labels of all series. Series may be added later. */
  readonly series: readonly Labels[];
}

/** A histogram of durations whose series are all known and exposed from the start. */
export class LatencyHistogram extends Histogram {
  readonly #options: HistogramOptions;
  readonly #bounds: Float64Array;
  /** For each series used so far, the counts per bucket, not cumulative, and after the last one the sum in seconds. */
  readonly #series: (Float64Array | undefined)[] = [];
  /** The exemplars of the buckets, by the series of the bucket as written in Prometheus' text format. */
  readonly exemplars = new Map<string, Exemplar>();

  constructor(options: HistogramOptions) {
    const { bounds, series: _, ...head } = options;
    super({ ...head, buckets: [...bounds] });
    this.#options = options;
    this.#bounds = Float64Array.from(bounds);
  }

  /**
   * Records one duration in a series, given by its index. Ignores unknown series and values that are not durations.
   *
   * @param traceId the id of the trace, if the request was traced. Each bucket keeps the last one.
   */
  record(index: number | undefined, seconds: number, traceId?: string): void {
    if (index === undefined || !(seconds >= 0)) return;
    const bounds = this.#bounds;
    while (this.#series.length <= index) this.#series.push(undefined);
    const seen = (this.#series[index] ??= new Float64Array(bounds.length + 2));
    let bucket = 0;
    while (bucket < bounds.length && seconds > (bounds[bucket] ?? 0)) bucket++;
    seen[bucket] = (seen[bucket] ?? 0) + 1;
    seen[bounds.length + 1] = (seen[bounds.length + 1] ?? 0) + seconds;
    if (traceId === undefined) return;
    const labels = { le: bounds[bucket] ?? "+Inf", ...this.#options.series[index] };
    const written = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
    const key = `${this.#options.name}_bucket{${written.join(",")}}`;
    this.exemplars.set(key, { traceId, value: seconds, atMs: Date.now() });
  }

  /**
   * prom-client 15 calls this on a scrape (lib/registry.js, and lib/histogram.js `get` for JSON). Overridden because
   * its own `observe` hashes and checks the labels of every observation.
   */
  async getForPromString(): Promise<object> {
    const { name, help, series, bounds } = this.#options;
    const values = series.flatMap((sharedLabels, index) => {
      const seen = this.#series[index];
      let count = 0;
      const buckets = [...bounds, "+Inf"].map((le, bucket) => {
        count += seen?.[bucket] ?? 0;
        return { metricName: `${name}_bucket`, labels: { le }, sharedLabels, value: count };
      });
      const sum = seen?.[bounds.length + 1] ?? 0;
      return [
        ...buckets,
        { metricName: `${name}_sum`, labels: {}, sharedLabels, value: sum },
        { metricName: `${name}_count`, labels: {}, sharedLabels, value: count },
      ];
    });
    return { name, help, type: "histogram", aggregator: "sum", values };
  }
}
