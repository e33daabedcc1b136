/** The sender of a request that has or wants a slot. */
export interface Requester {
  /** Its network (see `clientNetwork`). */
  readonly client: string;
  /** The subject of its token; undefined without a token. */
  readonly user: string | undefined;
  /** Whether its request cannot be retried if a target fails. */
  readonly once?: boolean;
}

/**
 * Counts the requests in flight of each requester: those of its address or of its user, whichever has more. So
 * neither many addresses with one token nor many tokens at one address count as many requesters. Requesters without
 * requests take no memory.
 */
export class InFlightCounts {
  readonly #ofClients = new Map<string, number>();
  readonly #ofUsers = new Map<string, number>();
  #all = 0;

  of({ client, user }: Requester): number {
    const ofClient = this.#ofClients.get(client) ?? 0;
    return user === undefined ? ofClient : Math.max(ofClient, this.#ofUsers.get(user) ?? 0);
  }

  /** The highest count that is still few for a requester: less than half of the average per address, but at least zero. */
  get fewLimit(): number {
    return Math.max(0, Math.ceil(this.#all / this.#ofClients.size / 2) - 1);
  }

  add({ client, user }: Requester): void {
    this.#all += 1;
    change(this.#ofClients, client, 1);
    if (user !== undefined) change(this.#ofUsers, user, 1);
  }

  remove({ client, user }: Requester): void {
    this.#all -= 1;
    change(this.#ofClients, client, -1);
    if (user !== undefined) change(this.#ofUsers, user, -1);
  }
}

function change(counts: Map<string, number>, key: string, by: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}
