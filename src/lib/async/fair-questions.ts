import { NotAskedError, remoteFailure } from "../text/error-code.ts";

export interface QuestionBounds {
  /**
   * The maximum number of concurrent questions, equal to the number of connections to the server. One client gets at
   * most half of them, so that a server that is slow for this client still answers for others.
   */
  readonly atOnce: number;
  /** The maximum number of questions, running and waiting. With a slow server, more would only fill memory. */
  readonly most: number;
  /** The same for one client. */
  readonly mostOfClient: number;
}

interface Client {
  asking: number;
  /** In the order in which they came. */
  readonly waiting: Set<Waiting>;
}

interface Waiting {
  readonly start: () => void;
  readonly drop: (reason: unknown) => void;
  /** Whether its turn has come. */
  begun: boolean;
}

/** Limits the concurrent questions to a server, and shares them fairly among the clients that cause them. */
export class FairQuestions {
  readonly #bounds: QuestionBounds;
  /** The clients with running or waiting questions, the one whose turn is next first. */
  readonly #clients = new Map<string, Client>();
  #asking = 0;
  #waiting = 0;

  constructor(bounds: QuestionBounds) {
    this.#bounds = bounds;
  }

  /**
   * Asks the question as soon as it is this client's turn.
   *
   * @param signal ends the wait. The question has a time limit of its own.
   * @throws NotAskedError if there are too many questions, or if its turn does not come in time; or what the question throws.
   */
  async ask<Answer>(
    name: string,
    signal: AbortSignal,
    question: () => Promise<Answer>,
  ): Promise<Answer> {
    const client = this.#clients.get(name) ?? { asking: 0, waiting: new Set() };
    const own = client.asking + client.waiting.size;
    const { most, mostOfClient } = this.#bounds;
    const isFull = this.#asking + this.#waiting >= most;
    if (own >= mostOfClient || (isFull && !this.#makeRoom(own))) throw tooMany();
    this.#clients.set(name, client);
    try {
      if (this.#mayAsk(client)) this.#begin(client);
      else await this.#turnOf(client, signal);
    } catch (error) {
      this.#forgetIdle(name, client);
      throw error instanceof NotAskedError ? error : new NotAskedError(remoteFailure(error), error);
    }
    try {
      return await question();
    } finally {
      client.asking -= 1;
      this.#asking -= 1;
      this.#forgetIdle(name, client);
      this.#next();
    }
  }

  #mayAsk({ asking }: Client): boolean {
    const { atOnce } = this.#bounds;
    return this.#asking < atOnce && asking < atOnce / 2;
  }

  #begin(client: Client): void {
    client.asking += 1;
    this.#asking += 1;
  }

  /** Gives up the newest waiting question of the client that has most, for one that has fewer. @returns whether it has. */
  #makeRoom(own: number): boolean {
    let most: Client | undefined;
    let count = own + 1;
    for (const client of this.#clients.values()) {
      const has = client.asking + client.waiting.size;
      if (client.waiting.size === 0 || has <= count) continue;
      most = client;
      count = has;
    }
    const newest = [...(most?.waiting ?? [])].at(-1);
    if (most === undefined || newest === undefined) return false;
    most.waiting.delete(newest);
    this.#waiting -= 1;
    newest.drop(tooMany());
    return true;
  }

  async #turnOf(client: Client, signal: AbortSignal): Promise<void> {
    const { promise, resolve: start, reject: drop } = Promise.withResolvers<void>();
    const late = (): void => drop(signal.reason);
    const waiting: Waiting = { start, drop, begun: false };
    client.waiting.add(waiting);
    this.#waiting += 1;
    signal.addEventListener("abort", late, { once: true });
    try {
      await promise;
    } catch (error) {
      // Its turn came at the same moment. The question then starts, and the signal ends it at once.
      if (waiting.begun) return;
      // Otherwise it had to make room.
      if (client.waiting.delete(waiting)) this.#waiting -= 1;
      throw error;
    } finally {
      signal.removeEventListener("abort", late);
    }
  }

  /** Starts the next question of the first client that may ask one, and moves that client to the end. */
  #next(): void {
    for (const [name, client] of this.#clients) {
      if (client.waiting.size === 0 || !this.#mayAsk(client)) continue;
      const [first] = client.waiting;
      if (first === undefined) continue;
      client.waiting.delete(first);
      this.#waiting -= 1;
      this.#clients.delete(name);
      this.#clients.set(name, client);
      this.#begin(client);
      first.begun = true;
      first.start();
      return;
    }
  }

  #forgetIdle(name: string, { asking, waiting }: Client): void {
    if (asking === 0 && waiting.size === 0) this.#clients.delete(name);
  }
}

function tooMany(): NotAskedError {
  return new NotAskedError("too many questions at once");
}
