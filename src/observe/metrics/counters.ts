import { Counter, type Registry } from "prom-client";

/** The definition of a metric, and its registry. */
export interface MetricDefinition {
  readonly registry: Registry;
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

/** Defines one of our own metrics; adds the prefix. */
export type DefineMetric = (
  name: string,
  help: string,
  ...labelNames: string[]
) => MetricDefinition;

type Labels = Readonly<Record<string, string>>;

/** Maps the values of a label to their slots in an array of counts. */
export function slotsOf(words: readonly string[]): ReadonlyMap<string, number> {
  return new Map(words.map((word, slot) => [word, slot]));
}

/** Counts by slot. */
type Counts = Float64Array | number[];

/** Adds to a slot in place. Does nothing if the slot is undefined. */
export function increment(counts: Counts, slot: number | undefined, by = 1): void {
  if (slot !== undefined) counts[slot] = (counts[slot] ?? 0) + by;
}

/** A counter whose series are all known and exposed from the start. */
export interface SlotCounter {
  /** One slot per series; the request path adds to it. */
  counts: Float64Array;
  /** Exposes more series, in slots after the existing ones. */
  add(series: readonly Labels[]): void;
}

/** Creates a slot counter. prom-client reads the counts only on a scrape, because its own `inc` hashes the labels. */
export function slotCounter(head: MetricDefinition, series: readonly Labels[]): SlotCounter {
  const shown = [...series];
  const counter: SlotCounter = {
    counts: new Float64Array(shown.length),
    add(more) {
      shown.push(...more);
      const { counts } = counter;
      counter.counts = new Float64Array(shown.length);
      counter.counts.set(counts);
    },
  };
  new Counter({
    ...registration(head),
    labelNames: head.labelNames,
    collect() {
      this.reset();
      for (const [slot, labels] of shown.entries()) this.inc(labels, counter.counts[slot] ?? 0);
    },
  });
  return counter;
}

/**
 * Registers a counter without labels whose value other code keeps. `read` returns the value, which must never
 * decrease.
 */
export function externalCounter(head: MetricDefinition, read: () => number): void {
  new Counter({
    ...registration(head),
    collect() {
      this.reset();
      this.inc(read());
    },
  });
}

function registration({ name, help, registry }: MetricDefinition) {
  return { name, help, registers: [registry] };
}

const CODES = 600;

/** A counter of responses by row and status code. */
export interface CodeCounter {
  /** Counts one response; ignores an unknown row. */
  count(row: number, code: number): void;
  /** Adds rows after the existing ones. */
  add(rows: readonly Labels[]): void;
}

/**
 * Creates a counter with a `code` label. Rows are known in advance (a route and a method, an upstream); each exposes
 * the status codes that have occurred. Codes outside 100–599 count as `other`, so that a backend cannot add series
 * without limit.
 *
 * @param foreseen the codes that a row exposes at 0 before they occur, once any code has occurred.
 * @param common whether a row exposes `foreseen` from the start.
 */
export function codeCounter(
  head: MetricDefinition,
  rows: readonly Labels[],
  foreseen: readonly number[],
  common: (labels: Labels) => boolean = () => true,
): CodeCounter {
  const known = [...rows];
  const seen: (Float64Array | undefined)[] = known.map(() => undefined);
  new Counter({
    ...registration(head),
    labelNames: head.labelNames,
    collect() {
      this.reset();
      for (const [row, codes] of seen.entries()) {
        const labels = known[row] ?? {};
        if (codes !== undefined || common(labels)) {
          for (const code of foreseen) this.inc({ ...labels, code }, 0);
        }
        codes?.forEach((count, code) => {
          if (count > 0) this.inc({ ...labels, code: code === 0 ? "other" : code }, count);
        });
      }
    },
  });
  return {
    count(row, code) {
      if (row < 0 || row >= seen.length) return;
      const codes = (seen[row] ??= new Float64Array(CODES));
      increment(codes, Number.isInteger(code) && code >= 100 && code < CODES ? code : 0);
    },
    add(more) {
      known.push(...more);
      seen.push(...more.map(() => undefined));
    },
  };
}
