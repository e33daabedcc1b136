import type { Clock } from "./clock.ts";

/** More than this does not wait but is done at once: so long nothing else is read, and those who ask too much are held up. */
const MOST_WAITING = 256;

/**
 * Costly work in this thread, for so long at most in one turn of the event loop: what is cheap is served between two turns
 * and need not wait behind all of it.
 */
export class LoopShare {
  readonly #clock: Clock;
  readonly #perTurnMs: number;
  readonly #waiting = new Set<() => void>();
  #usedMs = 0;
  #turning = false;

  /** @param perTurnMs the work that is under way when it is over is still finished, in milliseconds. */
  constructor(clock: Clock, perTurnMs: number) {
    this.#clock = clock;
    this.#perTurnMs = perTurnMs;
  }

  /** Whether work is to be done at once. */
  get free(): boolean {
    const { size } = this.#waiting;
    return size === 0 ? this.#usedMs < this.#perTurnMs : size >= MOST_WAITING;
  }

  /** Does it now, and counts how long it takes. */
  now<Result>(work: () => Result): Result {
    const began = this.#clock.monotonic();
    try {
      return work();
    } finally {
      this.#usedMs += this.#clock.monotonic() - began;
      this.#turn();
    }
  }

  /** Does it when its turn has come: first come, first served. */
  later<Result>(work: () => Result): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    this.#waiting.add(() => {
      try {
        resolve(this.now(work));
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
