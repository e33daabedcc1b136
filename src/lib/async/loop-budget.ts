import type { Clock } from "../clock.ts";

/**
 * The most tasks in the queue. Further work runs at once, which delays all further reads, including those of the
 * clients that cause the work.
 */
const MAX_QUEUED = 256;

/** Limits how long costly work may occupy each turn of the event loop, so that cheap work is served between turns. */
export class LoopBudget {
  readonly #clock: Clock;
  readonly #perTurnMs: number;
  readonly #waiting = new Set<() => void>();
  #usedMs = 0;
  #turning = false;

  /** @param perTurnMs the budget of one turn, in milliseconds. Work that has started runs to its end. */
  constructor(clock: Clock, perTurnMs: number) {
    this.#clock = clock;
    this.#perTurnMs = perTurnMs;
  }

  /** Whether work should run at once. */
  get canRunNow(): boolean {
    const { size } = this.#waiting;
    return size === 0 ? this.#usedMs < this.#perTurnMs : size >= MAX_QUEUED;
  }

  /** Runs the work now and charges its duration to this turn. */
  runNow<Result>(work: () => Result): Result {
    const began = this.#clock.monotonic();
    try {
      return work();
    } finally {
      this.#usedMs += this.#clock.monotonic() - began;
      this.#turn();
    }
  }

  /** Runs the work in a later turn, first in, first out. */
  enqueue<Result>(work: () => Result): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    this.#waiting.add(() => {
      try {
        resolve(this.runNow(work));
      } catch (error) {
        reject(error);
      }
    });
    this.#turn();
    return promise;
  }

  #turn(): void {
    if (this.#turning) return;
    this.#turning = true;
    setImmediate(this.#onTurn);
  }

  readonly #onTurn = (): void => {
    this.#turning = false;
    this.#usedMs = 0;
    for (const waiter of this.#waiting) {
      if (this.#usedMs >= this.#perTurnMs) break;
      this.#waiting.delete(waiter);
      waiter();
    }
    if (this.#waiting.size > 0) this.#turn();
  };
}
