import { type Aggregator, Counter, Gauge, Registry } from "prom-client";
import { LatencyHistogram } from "./event-metrics.ts";
import { CodeCounts, Counts, crossed, LabelSet, type Sample } from "./series.ts";

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
