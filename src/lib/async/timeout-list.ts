import { type Clock, LONGEST_TIMER_MS } from "../clock.ts";
import { reportUncaught } from "./isolation.ts";

/** Something with a deadline. It is its own node of the linked list, so that starting a timeout allocates nothing. */
export abstract class TimeoutEntry {
  /** The list that contains the entry, if any. */
  list: TimeoutList | undefined;
  previous: TimeoutEntry | undefined;
  next: TimeoutEntry | undefined;
  /** Monotonic milliseconds. */
  deadline = 0;

  /** Called when the deadline has passed and the entry has left the list. One that throws does not affect the others. */
  abstract onTimeout(limit: TimeoutList): void;
}

/**
 * Timeouts of one duration. They expire in the order in which they start, so one timer for the head of the list is
 * enough. Starting, restarting and cancelling a timeout are a few assignments each.
 */
export class TimeoutList {
  /** The duration, in milliseconds. */
  readonly ms: number;
  readonly #clock: Clock;
  #first: TimeoutEntry | undefined;
  #last: TimeoutEntry | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @param ms the duration, in milliseconds. */
  constructor(ms: number, clock: Clock) {
    this.ms = ms;
    this.#clock = clock;
  }

  /** Starts or restarts the timeout of an entry. If the entry is in another list, cancels that timeout. */
  start(timed: TimeoutEntry): void {
    timed.list?.cancel(timed);
    timed.list = this;
    timed.deadline = this.#clock.monotonic() + this.ms;
    timed.previous = this.#last;
    if (this.#last === undefined) this.#first = timed;
    else this.#last.next = timed;
    this.#last = timed;
    if (this.#timer === undefined) this.#schedule(this.ms);
  }

  /** Cancels a timeout of this list. */
  cancel(timed: TimeoutEntry): void {
    const { previous: before, next: after } = timed;
    if (before === undefined) this.#first = after;
    else before.next = after;
    if (after === undefined) this.#last = before;
    else after.previous = before;
    timed.list = undefined;
    timed.previous = undefined;
    timed.next = undefined;
  }

  /** Yields the entries, in the order in which they were started. */
  *entries(): Generator<TimeoutEntry> {
    for (let entry = this.#first; entry !== undefined; entry = entry.next) yield entry;
  }

  #schedule(ms: number): void {
    this.#timer = setTimeout(
      () => this.#expire(),
      Math.min(Math.ceil(ms), LONGEST_TIMER_MS),
    ).unref();
  }

  #expire(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    let first = this.#first;
    while (first !== undefined && first.deadline <= now) {
      this.cancel(first);
      try {
        first.onTimeout(this);
      } catch (error) {
        reportUncaught(error);
      }
      first = this.#first;
    }
    if (first !== undefined && this.#timer === undefined) this.#schedule(first.deadline - now);
  }
}
