import { type Aggregator, Counter, Gauge, Registry } from "prom-client";
import { LatencyHistogram } from "./event-metrics.ts";
import { Counts, type Labels, LabelSet, type Sample } from "./series.ts";
import { ERRORS } from "../../core/request/errors.ts";

/** Methods whose rows expose `SERVER_ERRORS` from the start; those of other methods do after their first use. */
const COMMON_METHODS: ReadonlySet<string | number> = new Set(["GET", "POST"]);

/**
 * The 5xx statuses of Sallyport's own responses. Their series exist at 0 from the start: a rate needs two samples, so
 * it would miss an outage whose first error creates the series.
 */
const SERVER_ERRORS: readonly number[] = [
  ...new Set(Object.values(ERRORS).map(({ status }): number => status)),
].filter((status) => status >= 500);

/** Returns the labels of all series of a metric with these sets of labels. */
function crossed(sets: readonly LabelSet[]): Labels[] {
  return sets.reduce<Labels[]>(
    (all, { labels }) => all.flatMap((some) => labels.map((more) => ({ ...some, ...more }))),
    [{}],
  );
}

const CODES = 600;

/**
 * The counts of responses by series and status code. A series exposes the codes that have occurred. Codes outside
 * 100–599 count as `other`, so that a backend cannot add series without limit.
 */
class CodeCounts {
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

type Values = number | undefined | readonly Sample[];

/** Returns the values of a metric on a scrape; undefined if it has none now. */
type Read = () => Values | Promise<Values>;

/** The name of a label, and its words. */
type Label<Word extends string> = Readonly<Record<string, readonly Word[]>>;

/** Defines Sallyport's own metrics in a registry; adds the prefix to their names. */
export class MetricDefinitions {
  readonly registry = new Registry();

  /** Defines a counter with a series for all combinations of labels, at 0 from the start. */
  counter(name: string, help: string, ...sets: readonly LabelSet[]): Counts {
    const counts = new Counts();
    this.readCounter(name, help, () => counts.samples(crossed(sets)), labelNames(sets));
    return counts;
  }

  /** Defines a counter by the words of a label. Returns a function that counts. */
  words<const Word extends string>(name: string, help: string, label: Label<Word>) {
    const words = labelSet(label);
    const counts = this.counter(name, help, words);
    return (word: Word, by?: number): void => counts.add(words.indexOf(word), by);
  }

  /** Defines a counter by name. Returns a function that counts. */
  names(name: string, help: string, names: LabelSet) {
    const counts = this.counter(name, help, names);
    return (counted: string): void => counts.add(names.indexOf(counted));
  }

  /** Defines a counter by name and by the words of a label. Returns a function that counts. */
  table<const Word extends string>(
    name: string,
    help: string,
    names: LabelSet,
    label: Label<Word>,
  ) {
    const words = labelSet(label);
    const counts = this.counter(name, help, names, words);
    return (counted: string, word: Word): void => {
      const row = names.indexOf(counted);
      const column = words.indexOf(word);
      if (row !== undefined && column !== undefined) counts.add(row * words.labels.length + column);
    };
  }

  /** Defines a counter of responses, with the additional label `code`. */
  codes(name: string, help: string, ...sets: readonly LabelSet[]): CodeCounts {
    const counts = new CodeCounts();
    const names = [...labelNames(sets), "code"];
    this.readCounter(name, help, () => counts.samples(crossed(sets)), names);
    return counts;
  }

  /** Defines a histogram with these upper bounds, in seconds. */
  durations(name: string, help: string, bounds: readonly number[], set?: LabelSet) {
    const head = this.#head(name, help, set?.names ?? []);
    return new LatencyHistogram({ ...head, bounds, series: set?.labels ?? [{}] });
  }

  /** Defines a counter whose values other code keeps. They must never decrease. */
  readCounter(name: string, help: string, read: Read, labelNames: readonly string[] = []): void {
    new Counter({ ...this.#head(name, help, labelNames), collect: collecting(read) });
  }

  /** Defines a gauge. `aggregator` says how to combine the values of several threads. */
  gauge(
    name: string,
    help: string,
    aggregator: Aggregator,
    read: Read,
    labelNames: readonly string[] = [],
  ): void {
    const head = this.#head(name, help, labelNames);
    new Gauge({ ...head, aggregator, collect: collecting(read) });
  }

  #head(name: string, help: string, labelNames: readonly string[]) {
    return { name: `sallyport_${name}`, help, labelNames, registers: [this.registry] };
  }
}

function labelNames(sets: readonly LabelSet[]): string[] {
  return sets.flatMap(({ names }) => names);
}

function labelSet<Word extends string>(label: Label<Word>): LabelSet<Word> {
  return new LabelSet(Object.keys(label), Object.values(label).flat());
}

/** Returns the function with which prom-client updates a metric on a scrape. */
function collecting(read: Read) {
  return async function collect(this: Counter | Gauge): Promise<void> {
    const values = await read();
    const samples = typeof values === "number" ? [[{}, values] as const] : (values ?? []);
    this.reset();
    // A reset creates a series without labels.
    if (samples.length === 0) this.remove({});
    for (const [labels, value] of samples) this.inc(labels, value);
  };
}
