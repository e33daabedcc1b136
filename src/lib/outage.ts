import type { Clock } from "./clock.ts";

/** Interval at which a lasting outage is logged again, in milliseconds. */
const REMIND_MS = 600_000;
/**
 * Minimum time between the beginnings of two outages in the log, in milliseconds. Without it, an unstable server could
 * flood the log, and so could a client that can make a check fail, for example with a name that occurs twice.
 */
const QUIET_MS = 10_000;

/**
 * Tracks the consecutive failures of one server or file, and decides when to log them: when they begin, every ten
 * minutes, and when they end.
 */
export class Outage {
  readonly #clock: Clock;
  #failures = 0;
  #since = 0;
  #began: number | undefined;
  #loggedAt = -Infinity;
  /** Whether the log has this outage. */
  #logged = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The number of failures since the last success. */
  get failures(): number {
    return this.#failures;
  }

  /** When the first of them was, in milliseconds since the epoch (wall clock); undefined if there is none. */
  get since(): number | undefined {
    return this.#began;
  }

  /** Counts a failure. @returns the outage if it is to be logged now. */
  failed() {
    const now = this.#clock.monotonic();
    if (this.#failures === 0) {
      this.#since = now;
      this.#began = this.#clock.now();
    }
    this.#failures += 1;
    if (now - this.#loggedAt < (this.#logged ? REMIND_MS : QUIET_MS)) return undefined;
    this.#loggedAt = now;
    this.#logged = true;
    return this.#soFar(now);
  }

  /** Notes a success. @returns the outage that it ends, if the log has it. */
  succeeded() {
    const ended = this.#logged ? this.#soFar(this.#clock.monotonic()) : undefined;
    this.#failures = 0;
    this.#began = undefined;
    this.#logged = false;
    return ended;
  }

  /** The failures since the last success. */
  #soFar(now: number): { readonly attempts: number; readonly seconds: number } {
    return { attempts: this.#failures, seconds: Math.round((now - this.#since) / 1000) };
  }
}
