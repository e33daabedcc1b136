import { Histogram } from "prom-client";
import type { MetricDefinition } from "./counters.ts";
import type { Exemplar } from "./open-metrics.ts";

/** Upper bounds in seconds: Prometheus' defaults, and two lower ones for responses without a backend. */
export const REQUEST_BUCKETS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

/** Upper bounds in seconds; a password hash alone takes tens of milliseconds. */
export const LOGIN_BUCKETS: readonly number[] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** The observations of one series of a histogram. */
class Observations {
  /** Counts per bucket, not cumulative. The last one is for values above all bounds. */
  readonly buckets: Float64Array;
  readonly #bounds: Float64Array;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = Float64Array.from(bounds);
    this.buckets = new Float64Array(bounds.length + 1);
  }

  /** @returns the index of the bucket. */
  observe(seconds: number): number {
    const bounds = this.#bounds;
    let slot = 0;
    while (slot < bounds.length && seconds > (bounds[slot] ?? 0)) slot++;
    this.buckets[slot] = (this.buckets[slot] ?? 0) + 1;
    this.sum += seconds;
    return slot;
  }
}

interface ExposedValue {
  readonly metricName: string;
  readonly labels: Record<string, string | number>;
  readonly sharedLabels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A histogram of durations whose series are all known and exposed from the start. */
export class LatencyHistogram extends Histogram {
  readonly #head: MetricDefinition;
  readonly #bounds: readonly number[];
  readonly #series: Readonly<Record<string, string>>[];
  readonly #observations: Observations[];
  /** The exemplars of the buckets, by the series of the bucket as written in Prometheus' text format. */
  readonly exemplars = new Map<string, Exemplar>();

  constructor(
    head: MetricDefinition,
    bounds: readonly number[],
    series: readonly Readonly<Record<string, string>>[],
  ) {
    super({
      name: head.name,
      help: head.help,
      labelNames: [...head.labelNames],
      buckets: [...bounds],
      registers: [head.registry],
    });
    this.#head = head;
    this.#bounds = bounds;
    this.#series = [...series];
    this.#observations = series.map(() => new Observations(bounds));
  }

  /** Adds series after the existing ones. */
  add(series: readonly Readonly<Record<string, string>>[]): void {
    this.#series.push(...series);
    this.#observations.push(...series.map(() => new Observations(this.#bounds)));
  }

  /**
   * Records one duration in a series, given by its index. Ignores unknown series and values that are not durations.
   *
   * @param traceId the id of the trace, if the request was traced. Each bucket keeps the last one.
   */
  record(slot: number, seconds: number, traceId?: string): void {
    if (!(seconds >= 0)) return;
    const place = this.#observations[slot]?.observe(seconds);
    if (traceId === undefined || place === undefined) return;
    const labels = Object.entries({ le: this.#bounds[place] ?? "+Inf", ...this.#series[slot] });
    const written = labels.map(([name, value]) => `${name}="${value}"`).join(",");
    const exemplar = { traceId, value: seconds, atMs: Date.now() };
    this.exemplars.set(`${this.#head.name}_bucket{${written}}`, exemplar);
  }

  /**
   * prom-client 15 calls this on a scrape (lib/registry.js, and lib/histogram.js `get` for JSON). Overridden because
   * its own `observe` hashes and checks the labels of every observation.
   */
  async getForPromString(): Promise<object> {
    const { name, help } = this.#head;
    const values = this.#observations.flatMap((seen, slot) => {
      const sharedLabels = { ...this.#series[slot] };
      const shown: ExposedValue[] = [];
      let count = 0;
      for (const [place, observed] of seen.buckets.entries()) {
        count += observed;
        const le = this.#bounds[place] ?? "+Inf";
        shown.push({ metricName: `${name}_bucket`, labels: { le }, sharedLabels, value: count });
      }
      shown.push({ metricName: `${name}_sum`, labels: {}, sharedLabels, value: seen.sum });
      shown.push({ metricName: `${name}_count`, labels: {}, sharedLabels, value: count });
      return shown;
    });
    return { name, help, type: "histogram", aggregator: "sum", values };
  }
}
