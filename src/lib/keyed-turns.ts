/** Too many wait for their turn already. */
export class TooManyWaiting extends Error {
  constructor() {
    super("too many wait for their turn");
    this.name = "TooManyWaiting";
  }
}

interface Line {
  running: number;
  readonly waiting: (() => void)[];
}

/** Lets only so many pieces of work run at once for one key; the others wait in the order in which they came. */
export class KeyedTurns {
  readonly #lines = new Map<string, Line>();
  readonly #maxWaiting: number;
  #waiting = 0;

  /** @param maxWaiting how many may wait, over all keys. */
  constructor(maxWaiting: number) {
    this.#maxWaiting = maxWaiting;
  }

  /**
   * @param limit how many may run at once for this key; asked again whenever one has ended. One always may.
   * @throws TooManyWaiting, or what the work throws.
   */
  async run<Result>(
    key: string,
    limit: () => number,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const line = this.#lines.get(key) ?? { running: 0, waiting: [] };
    this.#lines.set(key, line);
    if (line.running >= Math.max(1, limit())) await this.#wait(line);
    else line.running += 1;
    try {
      return await work();
    } finally {
      line.running -= 1;
      while (line.waiting.length > 0 && line.running < Math.max(1, limit())) {
        line.running += 1;
        line.waiting.shift()?.();
      }
      if (line.running === 0) this.#lines.delete(key);
    }
  }

  /** Whoever is woken counts as running already. */
  async #wait(line: Line): Promise<void> {
    if (this.#waiting >= this.#maxWaiting) throw new TooManyWaiting();
    this.#waiting += 1;
    await new Promise<void>((resolve) => line.waiting.push(resolve));
    this.#waiting -= 1;
  }
}
