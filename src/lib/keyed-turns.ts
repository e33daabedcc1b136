/** Too many wait for their turn already. */
export class TooManyWaiting extends Error {
  constructor() {
    super("too many wait for their turn");
    this.name = "TooManyWaiting";
  }
}

/** Where to wait: a line, and the group of lines that shares the places for waiting. */
export interface Line {
  readonly key: string;
  readonly group: string;
}

interface Turns {
  running: number;
  readonly waiting: (() => void)[];
}

/** Lets only so many pieces of work run at once for one key; the others wait in the order in which they came. */
export class KeyedTurns {
  readonly #lines = new Map<string, Turns>();
  readonly #waiting = new Map<string, number>();
  readonly #maxWaiting: number;

  /** @param maxWaiting how many may wait, over all keys of one group. There should be few groups. */
  constructor(maxWaiting: number) {
    this.#maxWaiting = maxWaiting;
  }

  /**
   * @param limit how many may run at once for this key; asked again whenever one has ended. One always may.
   * @throws TooManyWaiting, or what the work throws.
   */
  async run<Result>(
    { key, group }: Line,
    limit: () => number,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const turns = this.#lines.get(key) ?? { running: 0, waiting: [] };
    this.#lines.set(key, turns);
    if (turns.running >= Math.max(1, limit())) await this.#wait(turns, group);
    else turns.running += 1;
    try {
      return await work();
    } finally {
      turns.running -= 1;
      while (turns.waiting.length > 0 && turns.running < Math.max(1, limit())) {
        turns.running += 1;
        turns.waiting.shift()?.();
      }
      if (turns.running === 0) this.#lines.delete(key);
    }
  }

  /** Whoever is woken counts as running already. */
  async #wait(turns: Turns, group: string): Promise<void> {
    const waiting = this.#waiting.get(group) ?? 0;
    if (waiting >= this.#maxWaiting) throw new TooManyWaiting();
    this.#waiting.set(group, waiting + 1);
    await new Promise<void>((resolve) => turns.waiting.push(resolve));
    this.#waiting.set(group, (this.#waiting.get(group) ?? 0) - 1);
  }
}
