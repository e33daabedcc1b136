import { ReadingClient } from "./reading-client.ts";

/** A client that has used fewer units is never heavy. */
const LIGHT_UNITS = 16;
/** How long a heavy client without connections is remembered, in milliseconds. */
const REMEMBERED_MS = 2_000;

/** The clients with connections, by name, and heavy ones that had some a moment ago. */
export class ReadingClients {
  readonly #clients = new Map<string, ReadingClient>();

  [Symbol.iterator](): Iterator<[string, ReadingClient]> {
    return this.#clients.entries();
  }

  of(name: string): ReadingClient {
    let client = this.#clients.get(name);
    if (client === undefined) {
      client = new ReadingClient();
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

  /** Returns the usage from which a client is heavy: half of the usage-weighted mean. */
  heavyFrom(age: number): number {
    let all = 0;
    let squares = 0;
    for (const client of this.#clients.values()) {
      const used = client.used(age);
      all += used;
      squares += used * used;
    }
    return Math.max(LIGHT_UNITS, squares / all / 2);
  }
}
