/** Runs work once for all who ask for the same key while it is under way. Results and errors are shared, never kept. */
export class SingleFlight<Result> {
  readonly #underWay = new Map<string, Promise<Result>>();

  /** The work under way for this key, or else the work begun now. */
  run(key: string, work: () => Promise<Result>): Promise<Result> {
    const existing = this.#underWay.get(key);
    if (existing !== undefined) return existing;
    const begun = work().finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, begun);
    return begun;
  }
}
