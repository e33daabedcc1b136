import type { Clock } from "../../../lib/clock.ts";

/** How long after a long turn the event loop counts as busy, in milliseconds. */
const BUSY_MS = 100;
/**
 * How much slower usage decays while the loop is busy: with a half-life of 4 s. So earlier usage hardly puts a client behind
 * new ones, but its share of the scarce time counts until all have had their turn.
 */
const BUSY_DECAY = 128;

/** The time, and the time by which usage decays. */
export class ReadingTime {
  readonly #clock: Clock;
  #now = 0;
  #age = 0;
  #busyUntil = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The time as last read, in milliseconds. */
  get now(): number {
    return this.#now;
  }

  /** The time by which usage decays, in milliseconds; it passes slowly while the loop is busy. */
  get age(): number {
    return this.#age;
  }

  /** Whether a turn was too long a moment ago. */
  get isBusy(): boolean {
    return this.#now < this.#busyUntil;
  }

  read(): number {
    const now = this.#clock.monotonic();
    this.#age += (now - this.#now) / (this.isBusy ? BUSY_DECAY : 1);
    this.#now = now;
    return now;
  }

  /** The turn is too long. */
  turnedBusy(): void {
    this.#busyUntil = this.#now + BUSY_MS;
  }
}
