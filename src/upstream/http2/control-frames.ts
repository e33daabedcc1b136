import type { Clock } from "../../lib/clock.ts";

/**
 * Maximum number of frames that belong to no request, within the time below (milliseconds). Node processes and answers
 * each of them.
 */
const MOST = 1_000;
const WITHIN_MS = 10_000;

/** Counts a backend's frames that belong to no request: SETTINGS and PING. */
export class ControlFrames {
  readonly #clock: Clock;
  #count = 0;
  #since = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @returns whether there are too many. */
  add(): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#since > WITHIN_MS) {
      this.#since = now;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count > MOST;
  }
}
