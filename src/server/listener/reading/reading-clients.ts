import { ReadingClient } from "./reading-client.ts";
import type { SharedUsage } from "./shared-usage.ts";

/** A client that has used fewer units in each thread is never heavy. */
const LIGHT_UNITS = 16;
/** How long a heavy client without connections is remembered, in milliseconds. */
const REMEMBERED_MS = 2_000;

/** The clients with connections, by name, and heavy ones that had some a moment ago. */
export class ReadingClients {
  readonly #clients = new Map<string, ReadingClient>();
  readonly #shared: SharedUsage | undefined;

  /** @param shared what they have used in other threads; left out if there are none. */
  constructor(shared?: SharedUsage) {
    this.#shared = shared;
  }

  [Symbol.iterator](): Iterator<[string, ReadingClient]> {
    return this.#clients.entries();
  }

  of(name: string): ReadingClient {
    let client = this.#clients.get(name);
    if (client === undefined) {
      client = new ReadingClient(this.#shared?.bucketOf(name));
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

  /** What a client has used, in all threads. */
  used(client: ReadingClient, age: number): number {
    return client.used(age) + (this.#shared?.elsewhere(client.bucket) ?? 0);
  }

  /** Whether anything was read from a client, in any thread. */
  isKnown({ known, bucket }: ReadingClient): boolean {
    return known || (this.#shared?.elsewhere(bucket) ?? 0) > 0;
  }

  /**
   * Returns these clients, the lightest first. Newcomers follow those that are known to be light: a crowd that was not
   * read from yet has used nothing so far.
   *
   * @param heavy the usage from which a client is heavy.
   */
  lightestFirst(clients: Iterable<ReadingClient>, age: number, heavy: number): ReadingClient[] {
    return [...clients]
      .map((client) => {
        const used = this.used(client, age);
        return { client, used: this.isKnown(client) ? used : Math.max(used, heavy) };
      })
      .toSorted((one, other) => one.used - other.used)
      .map(({ client }) => client);
  }

  /** Lets the other threads know what has been used here, by those that were read from. */
  share(age: number): void {
    if (this.#shared === undefined) return;
    const known = [...this.#clients.values()].filter((client) => client.known);
    this.#shared.write(known.map((client) => [client.bucket, client.used(age)]));
  }

  /** Returns the usage from which a client is heavy: half of the usage-weighted mean. */
  heavyFrom(age: number): number {
    let all = 0;
    let squares = 0;
    for (const client of this.#clients.values()) {
      const used = this.used(client, age);
      all += used;
      squares += used * used;
    }
    return Math.max(LIGHT_UNITS * (this.#shared?.threads ?? 1), squares / all / 2);
  }
}
