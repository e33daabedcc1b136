import type { Postponed } from "../../../core/observer.ts";
import type { Heaviness, ReadingClient, ReadingClients } from "./reading-client.ts";

/** Connections that resume after a turn. */
const PER_TURN = { initial: 8, max: 1_024 };
/** How time is divided while connections are being accepted: one part for paused connections, this many for new ones. */
const ACCEPTING_PARTS = 4;

/** A completed turn of the event loop. Times are in milliseconds. */
interface EndedTurn {
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

/** The maximum length of a turn of the event loop, in milliseconds. Beyond it, the heaviest clients are no longer read. */
export const TURN_MS = 20;
/** Connections of clients that were served before, which start or resume in a turn in any case. */
export const SERVED_PER_TURN = 4;

/** Called with a client whose connections have to wait, and their number. */
export type OnPostponed = (what: Postponed, client: string, connections: number) => void;

/** The clients with connections that wait for their turn. */
export class WaitingClients extends Set<ReadingClient> {
  readonly #clients: ReadingClients;
  readonly #onPostponed: OnPostponed;
  readonly #resumeRate = new ResumeRate(TURN_MS);
  /** A client that has used this many units is heavy, while the loop is busy. */
  #heavy: Heaviness = { served: Infinity, others: Infinity };

  constructor(clients: ReadingClients, onPostponed: OnPostponed) {
    super();
    this.#clients = clients;
    this.#onPostponed = onPostponed;
  }

  /** The number of connections that wait. */
  get connections(): number {
    let all = 0;
    for (const { waiting } of this) all += waiting;
    return all;
  }

  isHeavy(client: ReadingClient, age: number): boolean {
    return this.#clients.isHeavy(client, age, this.#heavy);
  }

  /**
   * Pauses the heavy clients.
   *
   * @param current the client that is read in a turn that is still too long after they were paused: unless it is light, it is
   * paused, too, and so are clients that were never read.
   */
  pauseHeavy(age: number, current: ReadingClient | undefined): void {
    this.#heavy = this.#clients.heavyFrom(age);
    for (const [name, client] of this.#clients) {
      if (client.reading.size === 0) continue;
      const goesOn = client === current && !this.#clients.isLight(client, age);
      const isHeavy = goesOn || this.isHeavy(client, age);
      if (!isHeavy && (current === undefined || this.#clients.isEstablished(client))) continue;
      const paused = client.pause();
      if (paused === 0) continue;
      this.add(client);
      if (isHeavy) this.#onPostponed("read", name, paused);
    }
  }

  /** Resumes one connection of each client, the lightest client first; then another of each, as many as this turn allows. */
  resumeAfter(turn: EndedTurn, age: number): void {
    const most = this.#resumeRate.after(turn);
    const { clients, preferred } = this.#clients.lightestFirst(this, age, this.#heavy);
    let left = Math.max(most, Math.min(preferred, SERVED_PER_TURN));
    while (left > 0 && this.size > 0) {
      for (const client of clients.slice(0, left)) {
        left -= 1;
        client.resumeNext();
        if (client.waiting === 0) this.delete(client);
      }
    }
  }
}
