import fc from "fast-check";

/** Makes another list of one. */
export type ListChange<T> = (all: readonly T[]) => readonly T[];

/** An index, modulo the length of the list. */
export const place = fc.nat(99);

/** Leaves an element out. */
export function withoutOne<T>(): fc.Arbitrary<ListChange<T>> {
  return place.map(
    (at): ListChange<T> =>
      (all) =>
        all.toSpliced(at % all.length, 1),
  );
}

/** Puts an element behind itself. */
export function withOneTwice<T>(): fc.Arbitrary<ListChange<T>> {
  return place.map((at): ListChange<T> => (all) => {
    const index = at % all.length;
    return all.toSpliced(index, 0, ...all.slice(index, index + 1));
  });
}
