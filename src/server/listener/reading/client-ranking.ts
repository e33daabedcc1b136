import { LIGHT_UNITS, type ReadingClient } from "./reading-client.ts";
import type { SharedUsage } from "./shared-usage.ts";

/** Clients that were served are never heavy while they use less than this part of all units together. */
const SERVED_PART = 1 / 4;

/** The usage from which a client is heavy: for clients that were served before, and for others. */
export interface Heaviness {
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
