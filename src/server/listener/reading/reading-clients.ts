import { ReadingClient } from "./reading-client.ts";
import type { SharedUsage } from "./shared-usage.ts";

/** A client that has used fewer units in each thread is never heavy. */
const LIGHT_UNITS = 16;
/** How long a heavy client without connections is remembered, in milliseconds. */
const REMEMBERED_MS = 2_000;
/** Served clients that together use less than this part of all are never heavy. */
const SERVED_PART = 1 / 4;

/** The usage from which clients are heavy: those that were served, and others. */
export interface Heaviness {
  readonly served: number;
  readonly others: number;
}

/** The clients with connections, by name, and heavy ones that had some a moment ago. */
export class ReadingClients {
  readonly #clients = new Map<string, ReadingClient>();
  readonly #shared: SharedUsage;

  /** @param shared what they have used in other threads, and who was served. */
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

  /** Forgets a client without connections. A heavy one stays for a while, so that it stays heavy if it closes them. */
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
   * Returns these clients, the lightest first, those that were served before all others. Newcomers follow those that are
   * known to be light: a crowd that was not read from yet has used nothing so far.
   *
   * @param heavy the usage from which a client is heavy.
   * @returns also how many of them were served and are not heavy.
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
    // Before the first turn that was too long, nobody is heavy: `others` is infinite.
    const byUsage = ranked.toSorted((one, other) =>
      one.used === other.used ? 0 : one.used - other.used,
    );
    const [first, then] = [true, false].map((preferred) =>
      byUsage.filter((each) => each.preferred === preferred).map(({ client }) => client),
    );
    return { clients: [...(first ?? []), ...(then ?? [])], preferred: first?.length ?? 0 };
  }

  /** Lets the other threads know what has been used here, by those that were read from. */
  share(age: number): void {
    if (this.#shared.threads === 1) return;
    const known = [...this.#clients.values()].filter((client) => client.known);
    this.#shared.write(known.map((client) => [client.bucket, client.used(age)]));
  }

  /**
   * Returns the usage from which clients are heavy: half of the usage-weighted mean. For those that were served it is half of
   * their own mean, unless they are not what takes the time.
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

  /** What a client has used, in all threads. */
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
