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

/** What `ratiosOf` gives, as a spread. */
export function ratioOf(values: readonly number[], others: readonly number[]): Spread | undefined {
  return spreadOf(ratiosOf(values, others));
}

/** Each round's value divided by that of the same round of another, where there are both. */
export function ratiosOf(values: readonly number[], others: readonly number[]): readonly number[] {
  return values
    .map((value, round) => value / (others[round] ?? Number.NaN))
    .filter((ratio) => Number.isFinite(ratio));
}

/**
 * Between which values the true median lies, with a certainty of at least 95 %, however the values are distributed: from how
 * likely it is that as many of them as that lie on one side of it. Undefined for fewer than six.
 */
export function medianInterval(
  values: readonly number[],
): { readonly low: number; readonly high: number } | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  const count = sorted.length;
  let outside = 0;
  /** Of exactly `rank` values on the low side, each there by an even chance. */
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
