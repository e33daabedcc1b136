import type { Clock } from "../../lib/clock.ts";
import { TimeoutEntry, TimeoutList } from "../../lib/async/timeout-list.ts";

/** Milliseconds. */
export interface PingTimes {
  /** The silence after which a connection with requests is asked whether it works. */
  readonly quiet: number;
  /** The time for the answer. */
  readonly answer: number;
  /**
   * The silence until it is asked again, if it still works: servers of gRPC end a connection that asks more often than every
   * five minutes while they have nothing to say.
   */
  readonly again: number;
}

const USUAL: PingTimes = { quiet: 10_000, answer: 5_000, again: 330_000 };

/** The silences of all connections of a pool. */
export class Silences {
  readonly quiet: TimeoutList;
  readonly answer: TimeoutList;
  readonly again: TimeoutList;

  constructor(clock: Clock, times: PingTimes = USUAL) {
    this.quiet = new TimeoutList(times.quiet, clock);
    this.answer = new TimeoutList(times.answer, clock);
    this.again = new TimeoutList(times.again, clock);
  }
}

/** Asks a connection that is quiet while requests wait whether it still works, by PING. */
export class Liveness extends TimeoutEntry {
  readonly #silences: Silences;
  readonly #ping: (answered: () => void) => void;
  readonly #dead: () => void;

  /** @param ping sends a PING. @param dead called if it is not answered in time. */
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

  /** Something of an answer has arrived. */
  heard(): void {
    this.#silences.quiet.start(this);
  }

  /** No request waits. */
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
