/** Something that is costly to make or to lose, and what it was made from. */
export interface Kept<Value> {
  readonly madeFrom: string;
  readonly value: Value;
}

/** The same as before when it would be made from the same, else a new one. */
export function keep<Value>(
  before: Kept<Value> | undefined,
  madeFrom: unknown,
  make: () => Value,
): Kept<Value> {
  const text = JSON.stringify(madeFrom) ?? "";
  return before?.madeFrom === text ? before : { madeFrom: text, value: make() };
}
