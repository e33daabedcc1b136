import type { Clock } from "../../lib/clock.ts";
import { TimeoutEntry, TimeoutList } from "../../lib/async/timeout-list.ts";

/** Milliseconds. */
export interface PingTimes {
  /** The silence after which a PING checks a connection with requests. */
  readonly quiet: number;
  /** The time limit for the acknowledgement. */
  readonly answer: number;
  /**
   * The silence until the next PING if the connection works: gRPC servers close a connection on which more than one PING
   * arrives in five minutes while they send nothing.
   */
  readonly again: number;
}

const DEFAULT_TIMES: PingTimes = { quiet: 10_000, answer: 5_000, again: 330_000 };

/** Tracks the silence of all connections of a pool. */
export class Silences {
  readonly quiet: TimeoutList;
  readonly answer: TimeoutList;
  readonly again: TimeoutList;

  constructor(clock: Clock, times: PingTimes = DEFAULT_TIMES) {
    this.quiet = new TimeoutList(times.quiet, clock);
    this.answer = new TimeoutList(times.answer, clock);
    this.again = new TimeoutList(times.again, clock);
  }
}

/** Checks by PING whether a connection that is silent while requests wait still works. */
export class Liveness extends TimeoutEntry {
  readonly #silences: Silences;
  readonly #ping: (answered: () => void) => void;
  readonly #dead: () => void;

  /** @param ping sends a PING. @param dead called if no acknowledgement arrives in time. */
  constructor(silences: Silences, ping: (answered: () => void) => void, dead: () => void) {
    super();
    this.#silences = silences;
    this.#ping = ping;
    this.#dead = dead;
  }

  /** A request was sent. */
  sent(): void {
    const { quiet, again } = this.#silences;
    if (this.list === undefined || this.list === again) quiet.start(this);
  }

  /** A part of a response has arrived. */
  heard(): void {
    this.#silences.quiet.start(this);
  }

  /** No request is in flight. */
  rest(): void {
    this.list?.cancel(this);
  }

  override onTimeout(limit: TimeoutList): void {
    const { answer, again } = this.#silences;
    if (limit === answer) {
      this.#dead();
      return;
    }
    answer.start(this);
    this.#ping(() => {
      if (this.list === answer) again.start(this);
    });
  }
}
