/** A median with its spread. */
export interface Spread {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/** Undefined when there is nothing. */
export function spreadOf(values: readonly number[]): Spread | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  const [low] = sorted;
  const high = sorted.at(-1);
  const middle = sorted.slice(
    Math.floor((sorted.length - 1) / 2),
    Math.floor(sorted.length / 2) + 1,
  );
  if (low === undefined || high === undefined) return undefined;
  return { median: middle.reduce((sum, value) => sum + value, 0) / middle.length, low, high };
}

/** Each round's value divided by that of the same round of another. */
export function ratioOf(values: readonly number[], others: readonly number[]): Spread | undefined {
  const ratios = values.map((value, round) => value / (others[round] ?? Number.NaN));
  return spreadOf(ratios.filter((ratio) => Number.isFinite(ratio)));
}
