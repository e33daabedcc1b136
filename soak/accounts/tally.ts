/** Counts words. */
export class Tally {
  readonly #counts = new Map<string, number>();

  add(word: string, times = 1): void {
    this.#counts.set(word, this.of(word) + times);
  }

  of(word: string): number {
    return this.#counts.get(word) ?? 0;
  }

  get total(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  /** By word. */
  toJSON(): Record<string, number> {
    return Object.fromEntries([...this.#counts].toSorted(([a], [b]) => a.localeCompare(b)));
  }
}
