import { ReadingClient } from "./reading-client.ts";
import type { SharedUsage } from "./shared-usage.ts";

/** A client that has used fewer units per thread is never heavy. */
const LIGHT_UNITS = 16;
/** How long a heavy client without connections is remembered, in milliseconds. */
const REMEMBERED_MS = 2_000;
/** Clients that were served are never heavy while they use less than this part of all units together. */
const SERVED_PART = 1 / 4;

/** The usage from which a client is heavy: for clients that were served before, and for others. */
export interface Heaviness {
  readonly served: number;
  readonly others: number;
}

/** The clients with connections, by name, and heavy clients that had connections a moment ago. */
export class ReadingClients {
  readonly #clients = new Map<string, ReadingClient>();
  readonly #shared: SharedUsage;

  /** @param shared their usage in other threads, and who was served. */
  constructor(shared: SharedUsage) {
    this.#shared = shared;
  }

  [Symbol.iterator](): Iterator<[string, ReadingClient]> {
    return this.#clients.entries();
  }

  of(name: string): ReadingClient {
    let client = this.#clients.get(name);
    if (client === undefined) {
      client = new ReadingClient(this.#shared.bucketOf(name));
      this.#clients.set(name, client);
    }
    return client;
  }

  /** Forgets a client without connections. A heavy one is remembered for a while, so that closing them does not help it. */
  forget(name: string, age: number): void {
    const gone = (): void => {
      if (this.#clients.get(name)?.open === 0) this.#clients.delete(name);
    };
    if (this.of(name).used(age) < LIGHT_UNITS) gone();
    else setTimeout(gone, REMEMBERED_MS).unref();
  }

  /** A client was served. */
  served(client: ReadingClient): void {
    this.#shared.served(client.bucket);
  }

  /** Whether a client was served in the last minutes, in any thread. */
  wasServed({ bucket }: ReadingClient): boolean {
    return this.#shared.wasServed(bucket);
  }

  isHeavy(client: ReadingClient, age: number, { served, others }: Heaviness): boolean {
    const used = this.#used(client, age);
    return used >= others && (used >= served || !this.wasServed(client));
  }

  /** Whether anything was read from a client, in any thread. */
  isKnown({ known, bucket }: ReadingClient): boolean {
    return known || this.#shared.elsewhere(bucket) > 0;
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
      const preferred = this.wasServed(client) && !this.isHeavy(client, age, heavy);
      const used = this.#used(client, age);
      const known = preferred || this.isKnown(client);
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
      if (this.wasServed(client)) served.add(used);
    }
    const least = LIGHT_UNITS * this.#shared.threads;
    const takesTime = served.all >= everybody.all * SERVED_PART;
    return {
      served: takesTime ? Math.max(least, served.weightedMean / 2) : Infinity,
      others: Math.max(least, everybody.weightedMean / 2),
    };
  }

  /** Returns the usage of a client in all threads. */
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
