import type { MetricObjects } from "../../observe/metrics/summed-counts.ts";

type Labels = Readonly<Record<string, string | number>>;

interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

/** Computes sums of metrics that have the form of prom-client's JSON. */
export class Counted {
  readonly #samples = new Map<string, readonly Sample[]>();

  constructor(metrics: MetricObjects) {
    for (const each of metrics) {
      if (!("name" in each && "values" in each && Array.isArray(each.values))) continue;
      this.#samples.set(String(each.name), each.values.filter(isSample));
    }
  }

  /** Returns the sum of the samples of a metric that have these labels; 0 if there are none. */
  sum(name: string, labels: Labels = {}): number {
    return this.#fitting(name, labels).reduce((sum, { value }) => sum + value, 0);
  }

  /** Returns the sum of those samples whose status code is in a class: 4 means 400 to 499. */
  sumOfClass(name: string, labels: Labels, codeClass: number): number {
    return this.#fitting(name, labels)
      .filter((sample) => Math.floor(Number(sample.labels["code"]) / 100) === codeClass)
      .reduce((sum, { value }) => sum + value, 0);
  }

  #fitting(name: string, labels: Labels): Sample[] {
    const wanted = Object.entries(labels);
    return (this.#samples.get(`sallyport_${name}`) ?? []).filter((sample) =>
      wanted.every(([label, value]) => sample.labels[label] === value),
    );
  }
}

function isSample(value: unknown): value is Sample {
  return (
    typeof value === "object" &&
    value !== null &&
    "value" in value &&
    typeof value.value === "number" &&
    "labels" in value
  );
}
