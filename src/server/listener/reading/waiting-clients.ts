import type { Postponed } from "../../../core/observer.ts";
import { LIGHT_UNITS, type ReadingClient, type SharedUsage } from "./reading-client.ts";

/** Clients that were served are never heavy while they use less than this part of all units together. */
const SERVED_PART = 1 / 4;

/** The usage from which a client is heavy: for clients that were served before, and for others. */
interface Heaviness {
  readonly served: number;
  readonly others: number;
}

/** Compares clients by their usage in all threads. */
export class ClientRanking {
  readonly #clients: ReadonlyMap<string, ReadingClient>;
  readonly #shared: SharedUsage;

  /** @param shared their usage in other threads, and who was served. */
  constructor(clients: ReadonlyMap<string, ReadingClient>, shared: SharedUsage) {
    this.#clients = clients;
    this.#shared = shared;
  }

  isHeavy(client: ReadingClient, age: number, { served, others }: Heaviness): boolean {
    const used = this.#used(client, age);
    return used >= others && (used >= served || !this.#wasServed(client));
  }

  /** Whether a client was read or served before, in any thread. */
  isEstablished(client: ReadingClient): boolean {
    return this.#isKnown(client) || this.#wasServed(client);
  }

  /**
   * Sorts clients: those that were served come first, and within each group the lightest. Newcomers follow those that are
   * known to be light, since a crowd that has not been read yet has used nothing.
   *
   * @param heavy the usage from which a client is heavy.
   * @returns the clients, and how many of them come first because they were served and are not heavy.
   */
  lightestFirst(
    clients: Iterable<ReadingClient>,
    age: number,
    heavy: Heaviness,
  ): { readonly clients: readonly ReadingClient[]; readonly preferred: number } {
    const ranked = [...clients].map((client) => {
      const preferred = this.#wasServed(client) && !this.isHeavy(client, age, heavy);
      const used = this.#used(client, age);
      const known = preferred || this.#isKnown(client);
      return { client, preferred, used: known ? used : Math.max(used, heavy.others) };
    });
    // Before the first turn that is too long, no client is heavy: `others` is infinite, and infinities cannot be subtracted.
    const byUsage = ranked.toSorted((one, other) =>
      one.used === other.used ? 0 : one.used - other.used,
    );
    const [first, then] = [true, false].map((preferred) =>
      byUsage.filter((each) => each.preferred === preferred).map(({ client }) => client),
    );
    return { clients: [...(first ?? []), ...(then ?? [])], preferred: first?.length ?? 0 };
  }

  /** Publishes the usage of clients in this thread to the other threads. */
  share(age: number): void {
    if (this.#shared.threads === 1) return;
    const known = [...this.#clients.values()].filter((client) => client.known);
    this.#shared.write(known.map((client) => [client.bucket, client.used(age)]));
  }

  /**
   * Returns the usage from which clients are heavy: half of the usage-weighted mean. For those that were served it is half
   * of their own mean, or infinite if others take the time.
   */
  heavyFrom(age: number): Heaviness {
    const [everybody, served] = [new Sum(), new Sum()];
    for (const client of this.#clients.values()) {
      const used = this.#used(client, age);
      everybody.add(used);
      if (this.#wasServed(client)) served.add(used);
    }
    const least = LIGHT_UNITS * this.#shared.threads;
    const takesTime = served.all >= everybody.all * SERVED_PART;
    return {
      served: takesTime ? Math.max(least, served.weightedMean / 2) : Infinity,
      others: Math.max(least, everybody.weightedMean / 2),
    };
  }

  #isKnown({ known, bucket }: ReadingClient): boolean {
    return known || this.#shared.elsewhere(bucket) > 0;
  }

  #wasServed({ bucket }: ReadingClient): boolean {
    return this.#shared.wasServed(bucket);
  }

  #used(client: ReadingClient, age: number): number {
    return client.used(age) + this.#shared.elsewhere(client.bucket);
  }
}

class Sum {
  all = 0;
  #squares = 0;

  add(used: number): void {
    this.all += used;
    this.#squares += used * used;
  }

  get weightedMean(): number {
    return this.all === 0 ? 0 : this.#squares / this.all;
  }
}

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
