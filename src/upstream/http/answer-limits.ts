import type { Clock } from "../../lib/clock.ts";
import { TimeoutList } from "../../lib/async/timeout-list.ts";

/** The timeouts for the answers of an upstream. */
export class AnswerLimits {
  readonly response: TimeoutList;
  readonly idle: TimeoutList;

  /** @param timeouts milliseconds. */
  constructor(timeouts: { readonly response: number; readonly idle: number }, clock: Clock) {
    this.response = new TimeoutList(timeouts.response, clock);
    this.idle = new TimeoutList(timeouts.idle, clock);
  }
}
