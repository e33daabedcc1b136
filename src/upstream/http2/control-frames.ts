import type { Clock } from "../../lib/clock.ts";

/** The most frames that are about no request, in this time (milliseconds). Each takes time, and an answer from Node. */
const MOST = 1_000;
const WITHIN_MS = 10_000;

/** Counts what a backend sends about no request: SETTINGS and PING. */
export class ControlFrames {
  readonly #clock: Clock;
  #count = 0;
  #since = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @returns whether these are too many. */
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
