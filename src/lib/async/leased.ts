import { isDeepStrictEqual } from "node:util";

/**
 * A reference-counted value, closed when its last holder releases it. Its creator is the first holder. `acquire` and
 * `release` cost one addition each.
 */
export class Leased<Value> {
  readonly value: Value;
  readonly #close: (value: Value) => void | Promise<void>;
  readonly #closed = Promise.withResolvers<void>();
  #holders = 1;
  #retired = false;
  #closing: Promise<void> | undefined;

  constructor(value: Value, close: (value: Value) => void | Promise<void>) {
    this.value = value;
    this.#close = close;
  }

  /** Adds a holder, until `release`. Throws if the value is closed. */
  acquire(): void {
    if (this.#holders === 0) throw new Error("this value is closed");
    this.#holders += 1;
  }

  /** Removes a holder. */
  release(): void {
    this.#holders -= 1;
    if (this.#holders === 0) void this.close();
  }

  /** Holds the value while the work runs. */
  async use<Result>(work: (value: Value) => Promise<Result>): Promise<Result> {
    this.acquire();
    try {
      return await work(this.value);
    } finally {
      this.release();
    }
  }

  /** Releases the creator's hold; further calls do nothing. Resolves when the value is closed. */
  retire(): Promise<void> {
    if (!this.#retired) {
      this.#retired = true;
      this.release();
    }
    return this.#closed.promise;
  }

  /** Closes the value now, even if it is still held. */
  close(): Promise<void> {
    if (this.#closing === undefined) {
      this.#closing = Promise.resolve(this.#close(this.value));
      this.#closed.resolve(this.#closing);
    }
    return this.#closing;
  }
}

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
  const kept = reuseOrCreate(previous, inputs, () => new Leased(make(), closeIt));
  if (kept === previous) kept.value.acquire();
  return kept;
}

/** Written where it is used, it would keep `make` in memory, and what that refers to, such as all earlier values. */
const closeIt = (value: { close(): void | Promise<void> }): void | Promise<void> => value.close();

function isSame<Value>(
  previous: Reusable<Value> | undefined,
  inputs: unknown,
): previous is Reusable<Value> {
  return previous !== undefined && isDeepStrictEqual(previous.inputs, inputs);
}
