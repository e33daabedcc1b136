/** A median with its spread. */
export interface Spread {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/** Returns the median and the range; undefined without values. */
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

/** Returns the spread of `ratiosOf`. */
export function ratioOf(values: readonly number[], others: readonly number[]): Spread | undefined {
  return spreadOf(ratiosOf(values, others));
}

/** Divides each round's value by the other's value of the same round, for all rounds that have both. */
export function ratiosOf(values: readonly number[], others: readonly number[]): readonly number[] {
  return values
    .map((value, round) => value / (others[round] ?? Number.NaN))
    .filter((ratio) => Number.isFinite(ratio));
}

/**
 * Returns the confidence interval of the median, of at least 95 %, for any distribution of the values: from the binomial
 * probability that a given number of them lies on one side of the median. Undefined for fewer than six values.
 */
export function medianInterval(
  values: readonly number[],
): { readonly low: number; readonly high: number } | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  const count = sorted.length;
  let outside = 0;
  /** The probability that exactly `rank` values lie below the median. */
  let chance = 0.5 ** count;
  let rank = 0;
  while (outside + chance <= 0.025) {
    outside += chance;
    chance *= (count - rank) / (rank + 1);
    rank += 1;
  }
  const [low, high] = [sorted[rank - 1], sorted[count - rank]];
  return low === undefined || high === undefined ? undefined : { low, high };
}
