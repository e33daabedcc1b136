/** Connections that resume after a turn. */
const PER_TURN = { initial: 8, max: 1_024 };
/** How time is divided while connections are being accepted: one part for paused connections, this many for new ones. */
const ACCEPTING_PARTS = 4;

/** A completed turn of the event loop. Times are in milliseconds. */
export interface EndedTurn {
  readonly end: number;
  readonly lasted: number;
  /** Whether it paused clients. */
  readonly overran: boolean;
  /** Whether it accepted connections. */
  readonly accepted: boolean;
}

/** Decides how many postponed connections resume after each turn: fewer after one that overran, more after a short one. */
export class ResumeRate {
  readonly #turnMs: number;
  #perTurn = PER_TURN.initial;
  #notBefore = 0;
  #resumed = false;

  /** @param turnMs the intended maximum length of a turn. */
  constructor(turnMs: number) {
    this.#turnMs = turnMs;
  }

  /** Returns how many connections resume now. */
  after(turn: EndedTurn): number {
    if (this.#resumed) this.#adapt(turn);
    this.#resumed = !turn.accepted || turn.end >= this.#notBefore;
    return this.#resumed ? this.#perTurn : 0;
  }

  #adapt({ end, lasted, overran, accepted }: EndedTurn): void {
    if (overran) this.#perTurn = Math.max(1, this.#perTurn >> 1);
    else if (lasted < this.#turnMs / 4) this.#perTurn = Math.min(this.#perTurn * 2, PER_TURN.max);
    this.#notBefore = accepted ? end + lasted * ACCEPTING_PARTS : end;
  }
}
