import { isDeepStrictEqual } from "node:util";
import { Leased } from "./leased.ts";

/** A value that is costly to create or to lose, with the inputs it was created from. */
export interface Reusable<Value> {
  readonly inputs: unknown;
  readonly value: Value;
}

/** Returns the previous value if its inputs are equal, else creates a new one. */
export function reuseOrCreate<Value>(
  previous: Reusable<Value> | undefined,
  inputs: unknown,
  make: () => Value,
): Reusable<Value> {
  return isSame(previous, inputs) ? previous : { inputs, value: make() };
}

/** The asynchronous form of `reuseOrCreate`. Rejects as `make` does. */
export async function reuseOrCreateAsync<Value>(
  previous: Reusable<Value> | undefined,
  inputs: unknown,
  make: () => Promise<Value>,
): Promise<Reusable<Value>> {
  return isSame(previous, inputs) ? previous : { inputs, value: await make() };
}

/**
 * The form of `reuseOrCreate` for values that must be closed. The caller becomes a holder of the lease and must release
 * it.
 */
export function reuseOrLease<Value extends { close(): void | Promise<void> }>(
  previous: Reusable<Leased<Value>> | undefined,
  inputs: unknown,
  make: () => Value,
): Reusable<Leased<Value>> {
  if (!isSame(previous, inputs)) {
    return { inputs, value: new Leased(make(), (value) => value.close()) };
  }
  previous.value.acquire();
  return previous;
}

function isSame<Value>(
  previous: Reusable<Value> | undefined,
  inputs: unknown,
): previous is Reusable<Value> {
  return previous !== undefined && isDeepStrictEqual(previous.inputs, inputs);
}
