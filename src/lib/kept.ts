import { fingerprint } from "./fingerprint.ts";

/** Something that is costly to make or to lose. */
export interface Kept<Value> {
  /** Fingerprint of what it was made from: the text itself may hold private keys. */
  readonly madeFrom: string;
  readonly value: Value;
}

/**
 * The same as before when it would be made from the same, else a new one.
 *
 * @param madeFrom what JSON can tell apart: `Infinity` and `null` are one to it, for example.
 */
export function keep<Value>(
  before: Kept<Value> | undefined,
  madeFrom: unknown,
  make: () => Value,
): Kept<Value> {
  const print = fingerprint(JSON.stringify(madeFrom) ?? "");
  return before?.madeFrom === print ? before : { madeFrom: print, value: make() };
}

/** The same of what takes its time to make. Rejects as `make` does. */
export async function keepAwaited<Value>(
  before: Kept<Value> | undefined,
  madeFrom: unknown,
  make: () => Promise<Value>,
): Promise<Kept<Value>> {
  const kept = keep<Value | Promise<Value>>(before, madeFrom, make);
  return kept === before ? before : { madeFrom: kept.madeFrom, value: await kept.value };
}
