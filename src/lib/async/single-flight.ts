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
