/** Chance that a seed repeats: the same seed gives the same throws. */
export interface Dice {
  /** From 0 up to, and not including, 1. */
  fraction(): number;
  /** A whole number, both ends included. */
  between(least: number, most: number): number;
  /** @throws RangeError when there is nothing to pick from. */
  pick<T>(from: readonly T[]): T;
  shuffled<T>(items: readonly T[]): T[];
}

/** Mulberry32: 32 bits of state, a full period, and good enough to choose what comes next. */
export function createDice(seed: number): Dice {
  let state = seed >>> 0;
  const fraction = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (least: number, most: number): number =>
    least + Math.floor(fraction() * (most - least + 1));
  return {
    fraction,
    between,
    pick(from) {
      const picked = from[between(0, from.length - 1)];
      if (picked === undefined) throw new RangeError("there is nothing to pick from");
      return picked;
    },
    shuffled(items) {
      return items
        .map((item) => ({ item, rank: fraction() }))
        .toSorted((a, b) => a.rank - b.rank)
        .map(({ item }) => item);
    },
  };
}
