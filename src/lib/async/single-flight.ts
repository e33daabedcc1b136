import type { Clock } from "../clock.ts";

/** Returns a function that runs work, unless a result is younger than this; concurrent callers share a run. An error is not kept. */
export function sharedFor<Result>(
  forMs: number,
  clock: Pick<Clock, "monotonic">,
  work: () => Promise<Result>,
): () => Promise<Result> {
  const flights = new SingleFlight<Result>();
  let known: { readonly result: Result; readonly until: number } | undefined;
  const run = async (): Promise<Result> => {
    const result = await work();
    known = { result, until: clock.monotonic() + forMs };
    return result;
  };
  return async () =>
    known !== undefined && clock.monotonic() < known.until ? known.result : flights.run("", run);
}

/** Runs one piece of work per key at a time; concurrent callers share its result or error, which is not cached. */
export class SingleFlight<Result> {
  readonly #inFlight = new Map<string, Promise<Result>>();

  /** Joins the work in flight for this key, or starts it. */
  run(key: string, work: () => Promise<Result>): Promise<Result> {
    const existing = this.#inFlight.get(key);
    if (existing !== undefined) return existing;
    const begun = work().finally(() => this.#inFlight.delete(key));
    this.#inFlight.set(key, begun);
    return begun;
  }
}
