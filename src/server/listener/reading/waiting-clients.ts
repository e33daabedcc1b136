import type { Postponed } from "../../../core/observer.ts";
import { ClientRanking, type Heaviness } from "./client-ranking.ts";
import type { ReadingClient } from "./reading-client.ts";
import { type EndedTurn, ResumeRate } from "./resume-rate.ts";
import type { SharedUsage } from "./shared-usage.ts";

/** The maximum length of a turn of the event loop, in milliseconds. Beyond it, the heaviest clients are no longer read. */
export const TURN_MS = 20;
/** Connections of clients that were served before, which start or resume in a turn in any case. */
export const SERVED_PER_TURN = 4;

/** Called with a client whose connections have to wait, and their number. */
export type OnPostponed = (what: Postponed, client: string, connections: number) => void;

/** The clients with connections that wait for their turn. */
export class WaitingClients extends Set<ReadingClient> {
  readonly #clients: ReadonlyMap<string, ReadingClient>;
  readonly #ranking: ClientRanking;
  readonly #onPostponed: OnPostponed;
  readonly #resumeRate = new ResumeRate(TURN_MS);
  /** A client that has used this many units is heavy, while the loop is busy. */
  #heavy: Heaviness = { served: Infinity, others: Infinity };

  constructor(
    clients: ReadonlyMap<string, ReadingClient>,
    shared: SharedUsage,
    onPostponed: OnPostponed,
  ) {
    super();
    this.#clients = clients;
    this.#ranking = new ClientRanking(clients, shared);
    this.#onPostponed = onPostponed;
  }

  /** The number of connections that wait. */
  get connections(): number {
    let all = 0;
    for (const { waiting } of this) all += waiting;
    return all;
  }

  isHeavy(client: ReadingClient, age: number): boolean {
    return this.#ranking.isHeavy(client, age, this.#heavy);
  }

  /**
   * Pauses the clients whose usage is at least half of the usage-weighted mean.
   *
   * @param newcomers whether clients that were never read are paused, too.
   */
  pauseHeavy(age: number, newcomers: boolean): void {
    this.#heavy = this.#ranking.heavyFrom(age);
    for (const [name, client] of this.#clients) {
      if (client.reading.size === 0) continue;
      const isHeavy = this.isHeavy(client, age);
      if (!isHeavy && (!newcomers || this.#ranking.isEstablished(client))) continue;
      const paused = client.pause();
      if (paused === 0) continue;
      this.add(client);
      if (isHeavy) this.#onPostponed("read", name, paused);
    }
  }

  /** Publishes the usage of clients to the other threads. */
  share(age: number): void {
    this.#ranking.share(age);
  }

  /** Resumes one connection of each client, the lightest client first; then another of each, as many as this turn allows. */
  resumeAfter(turn: EndedTurn, age: number): void {
    const most = this.#resumeRate.after(turn);
    const { clients, preferred } = this.#ranking.lightestFirst(this, age, this.#heavy);
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
