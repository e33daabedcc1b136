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

/** Adds to a slot in place; no slot, no count. */
export function countUp(counts: Float64Array, slot: number | undefined, by = 1): void {
  if (slot !== undefined) counts[slot] = (counts[slot] ?? 0) + by;
}

/**
 * A counter whose series are all known, and shown from the start. The request path adds to the array that is given back,
 * one slot for every series; prom-client, whose own `inc` hashes labels, sees the numbers on a scrape only.
 */
export function slotCounter(head: MetricHead, series: readonly Labels[]): Float64Array {
  const counts = new Float64Array(series.length);
  new Counter({
    name: head.name,
    help: head.help,
    labelNames: head.labelNames,
    registers: [head.registry],
    collect() {
      this.reset();
      for (const [slot, labels] of series.entries()) this.inc(labels, counts[slot] ?? 0);
    },
  });
  return counts;
}

const CODES = 600;

/**
 * A counter with a `code` label: rows that are known (a route and a method, an upstream), each with the status codes
 * that it has seen. A code outside 100-599 is counted as `other`, so that a backend cannot add series without end.
 * @returns a function that counts one answer; it ignores a row that does not exist.
 */
export function codeCounter(
  head: MetricHead,
  rows: readonly Labels[],
): (row: number, code: number) => void {
  const seen: (Float64Array | undefined)[] = rows.map(() => undefined);
  new Counter({
    name: head.name,
    help: head.help,
    labelNames: head.labelNames,
    registers: [head.registry],
    collect() {
      this.reset();
      for (const [row, codes] of seen.entries()) {
        codes?.forEach((count, code) => {
          if (count > 0) this.inc({ ...rows[row], code: code === 0 ? "other" : code }, count);
        });
      }
    },
  });
  return (row, code) => {
    if (row < 0 || row >= seen.length) return;
    const codes = (seen[row] ??= new Float64Array(CODES));
    countUp(codes, Number.isInteger(code) && code >= 100 && code < CODES ? code : 0);
  };
}
