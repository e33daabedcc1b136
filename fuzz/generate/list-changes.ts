import fc from "fast-check";

/** Returns a changed copy of a list. */
export type ListChange<T> = (all: readonly T[]) => readonly T[];

/** An index, modulo the length of the list. */
export const place = fc.nat(99);

/** Removes an element. */
export function withoutOne<T>(): fc.Arbitrary<ListChange<T>> {
  return place.map(
    (at): ListChange<T> =>
      (all) =>
        all.toSpliced(at % all.length, 1),
  );
}

/** Doubles an element. */
export function withOneTwice<T>(): fc.Arbitrary<ListChange<T>> {
  return place.map((at): ListChange<T> => (all) => {
    const index = at % all.length;
    return all.toSpliced(index, 0, ...all.slice(index, index + 1));
  });
}
