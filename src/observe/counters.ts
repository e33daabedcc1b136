import { Counter, type Registry } from "prom-client";

/** Where a metric is registered, and how it is introduced. */
export interface MetricHead {
  readonly registry: Registry;
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

/** Introduces a metric of ours; the prefix is added. */
export type Introduce = (name: string, help: string, ...labelNames: string[]) => MetricHead;

type Labels = Readonly<Record<string, string>>;

/** The values of a label and their places in an array of counts. */
export function slotsOf(words: readonly string[]): ReadonlyMap<string, number> {
  return new Map(words.map((word, slot) => [word, slot]));
}

/** Numbers by slot. */
type Counts = Float64Array | number[];

/** Adds to a slot in place; no slot, no count. */
export function countUp(counts: Counts, slot: number | undefined, by = 1): void {
  if (slot !== undefined) counts[slot] = (counts[slot] ?? 0) + by;
}

/** A counter whose series are all known, and shown from the start. */
export interface SlotCounter {
  /** One slot for every series; the request path adds to it. */
  counts: Float64Array;
  /** Shows more series, in slots behind those that are there. */
  add(series: readonly Labels[]): void;
}

/** prom-client, whose own `inc` hashes labels, sees the numbers on a scrape only. */
export function slotCounter(head: MetricHead, series: readonly Labels[]): SlotCounter {
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
    name: head.name,
    help: head.help,
    labelNames: head.labelNames,
    registers: [head.registry],
    collect() {
      this.reset();
      for (const [slot, labels] of shown.entries()) this.inc(labels, counter.counts[slot] ?? 0);
    },
  });
  return counter;
}

/** A counter without labels that somebody else keeps; `read` gives what it has come to, which never falls. */
export function keptCounter(head: MetricHead, read: () => number): void {
  new Counter({
    name: head.name,
    help: head.help,
    registers: [head.registry],
    collect() {
      this.reset();
      this.inc(read());
    },
  });
}

const CODES = 600;

export interface CodeCounter {
  /** Counts one answer; ignores a row that does not exist. */
  count(row: number, code: number): void;
  /** Adds rows behind those that are there. */
  add(rows: readonly Labels[]): void;
}

/**
 * A counter with a `code` label: rows that are known (a route and a method, an upstream), each with the status codes
 * that it has seen. A code outside 100-599 is counted as `other`, so that a backend cannot add series without end.
 */
export function codeCounter(head: MetricHead, rows: readonly Labels[]): CodeCounter {
  const known = [...rows];
  const seen: (Float64Array | undefined)[] = known.map(() => undefined);
  new Counter({
    name: head.name,
    help: head.help,
    labelNames: head.labelNames,
    registers: [head.registry],
    collect() {
      this.reset();
      for (const [row, codes] of seen.entries()) {
        codes?.forEach((count, code) => {
          if (count > 0) this.inc({ ...known[row], code: code === 0 ? "other" : code }, count);
        });
      }
    },
  });
  return {
    count(row, code) {
      if (row < 0 || row >= seen.length) return;
      const codes = (seen[row] ??= new Float64Array(CODES));
      countUp(codes, Number.isInteger(code) && code >= 100 && code < CODES ? code : 0);
    },
    add(more) {
      known.push(...more);
      seen.push(...more.map(() => undefined));
    },
  };
}
