/** Retries that are always possible, so that a quiet upstream can repeat its first failure. */
const MOST = 10;
/** Each request earns this part of a retry: at most 20 % of the requests are sent again. */
const EARNED = 0.2;

/** Bounds the retries of an upstream, so that a failing backend does not get a multiple of its load. */
export class RetryBudget {
  #left = MOST;

  /** A request was sent for the first time. */
  earn(): void {
    if (this.#left < MOST) this.#left += EARNED;
  }

  /** Takes a retry, if there is one. */
  take(): boolean {
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
