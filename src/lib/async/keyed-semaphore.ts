/** The queue is full. */
export class QueueFullError extends Error {
  constructor() {
    super("the queue is full");
    this.name = "QueueFullError";
  }
}

/** The key of a queue, and the group of queues that shares a limit on waiters. */
export interface QueueKey {
  readonly key: string;
  readonly group: string;
}

interface Entry {
  running: number;
  readonly waiters: (() => void)[];
}

/** Limits how much work runs concurrently for each key. Further work waits, first in, first out. */
export class KeyedSemaphore {
  readonly #entries = new Map<string, Entry>();
  readonly #waiting = new Map<string, number>();
  /**
   * The most waiters over all keys of one group. A lower one affects only new waiters. Groups are never removed, so use
   * few of them.
   */
  maxWaiting: number;

  constructor(maxWaiting: number) {
    this.maxWaiting = maxWaiting;
  }

  /**
   * Runs the work as soon as its key has room.
   *
   * @param limit concurrent runs for this key, at least 1. Read again whenever a run ends.
   * @throws QueueFullError, or whatever the work throws.
   */
  async run<Result>(
    { key, group }: QueueKey,
    limit: () => number,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const entry = this.#entries.get(key) ?? { running: 0, waiters: [] };
    this.#entries.set(key, entry);
    if (entry.running >= Math.max(1, limit())) await this.#wait(entry, group);
    else entry.running += 1;
    try {
      return await work();
    } finally {
      entry.running -= 1;
      while (entry.waiters.length > 0 && entry.running < Math.max(1, limit())) {
        entry.running += 1;
        entry.waiters.shift()?.();
      }
      if (entry.running === 0) this.#entries.delete(key);
    }
  }

  /** The caller that wakes a waiter has already counted it as running. */
  async #wait(entry: Entry, group: string): Promise<void> {
    const waiting = this.#waiting.get(group) ?? 0;
    if (waiting >= this.maxWaiting) throw new QueueFullError();
    this.#waiting.set(group, waiting + 1);
    await new Promise<void>((resolve) => entry.waiters.push(resolve));
    this.#waiting.set(group, (this.#waiting.get(group) ?? 0) - 1);
  }
}
