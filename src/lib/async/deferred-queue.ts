import { reportUncaught } from "./isolation.ts";

/** Runs deferred work: a few tasks in each turn of the event loop, first in, first out. */
export class DeferredQueue {
  readonly #perTurn: number;
  /** A Set removes its first member in constant time. */
  readonly #waiting = new Set<() => void>();
  #turning = false;

  /** @param perTurn tasks per turn. */
  constructor(perTurn: number) {
    this.#perTurn = perTurn;
  }

  /** Runs the task in a later turn. Has no effect if this function is already queued. A task that throws does not affect the others. */
  defer(work: () => void): void {
    this.#waiting.add(work);
    this.#turn();
  }

  #turn(): void {
    if (this.#turning) return;
    this.#turning = true;
    setImmediate(this.#onTurn);
  }

  readonly #onTurn = (): void => {
    this.#turning = false;
    let done = 0;
    for (const work of this.#waiting) {
      if (done >= this.#perTurn) break;
      done += 1;
      this.#waiting.delete(work);
      try {
        work();
      } catch (error) {
        reportUncaught(error);
      }
    }
    if (this.#waiting.size > 0) this.#turn();
  };
}
