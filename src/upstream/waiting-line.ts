import type { EventEmitter } from "node:events";
import { GateError } from "../core/errors.ts";
import type { Shares } from "./shares.ts";

export interface WaitingLineLimits {
  /** How many may wait. */
  readonly length: number;
  /** Milliseconds. */
  readonly timeout: number;
}

interface Waiter<Place> {
  /** Counted from 1: who came first has the lowest. */
  readonly arrival: number;
  readonly serve: (place: Place) => void;
  readonly refuse: (error: GateError) => void;
}

/**
 * Those who wait for a place, nobody for longer than a limit. A place goes to the client that has the fewest, and among
 * equals to who came first; so one that asks for more than all others together does not keep them from theirs. Each
 * call costs a step for each client that waits, at most.
 */
export class WaitingLine<Place> {
  readonly #limits: WaitingLineLimits;
  /** The places that each client has. */
  readonly #places: Shares;
  /** By client; of each, in the order in which they came. */
  readonly #waiters = new Map<string, Waiter<Place>[]>();
  #length = 0;
  #arrivals = 0;

  constructor(limits: WaitingLineLimits, places: Shares) {
    this.#limits = limits;
    this.#places = places;
  }

  get length(): number {
    return this.#length;
  }

  /** The clients that wait. */
  clients(): Iterable<string> {
    return this.#waiters.keys();
  }

  /** How many requests of a client wait. */
  lengthOf(client: string): number {
    return this.#waiters.get(client)?.length ?? 0;
  }

  /** Gives a place to whose turn it is; the client that got it, undefined when nobody waits. */
  serve(place: Place): string | undefined {
    let fewest = Infinity;
    let next: Waiter<Place> | undefined;
    let served: string | undefined;
    for (const [client, [first]] of this.#waiters) {
      const places = this.#places.of(client);
      if (first === undefined || places > fewest) continue;
      if (places === fewest && next !== undefined && next.arrival < first.arrival) continue;
      fewest = places;
      next = first;
      served = client;
    }
    next?.serve(place);
    return served;
  }

  /**
   * Waits for a place.
   *
   * @param connection closes when nobody waits any more.
   * @returns undefined when the client left.
   * @throws GateError `upstream_busy` when the line is full, also later for one who has more than another that comes then;
   * or when the time is over.
   */
  join(client: string, connection: EventEmitter): Promise<Place | undefined> {
    if (this.#length >= this.#limits.length && !this.#displaceFor(client)) {
      return Promise.reject(busy("upstream_busy"));
    }
    const { promise, resolve, reject } = Promise.withResolvers<Place | undefined>();
    const leave = (): void => {
      this.#remove(client, waiter);
      connection.off("close", onGone);
      clearTimeout(timer);
    };
    const onGone = (): void => {
      leave();
      resolve(undefined);
    };
    const refuse = (error: GateError): void => {
      leave();
      reject(error);
    };
    const serve = (place: Place): void => {
      leave();
      resolve(place);
    };
    const timer = setTimeout(() => refuse(busy("upstream_queue_timeout")), this.#limits.timeout);
    connection.once("close", onGone);
    this.#arrivals += 1;
    const waiter = { arrival: this.#arrivals, serve, refuse };
    this.#add(client, waiter);
    return promise;
  }

  /**
   * Makes the last of the client leave that has the most, waiting and at the backend, if it has more even so than the
   * newcomer will have.
   */
  #displaceFor(newcomer: string): boolean {
    let most = this.#places.of(newcomer) + this.lengthOf(newcomer) + 1;
    let last: Waiter<Place> | undefined;
    for (const [client, waiters] of this.#waiters) {
      const all = this.#places.of(client) + waiters.length;
      if (all <= most) continue;
      most = all;
      last = waiters.at(-1);
    }
    last?.refuse(busy("upstream_busy"));
    return last !== undefined;
  }

  #add(client: string, waiter: Waiter<Place>): void {
    const waiters = this.#waiters.get(client);
    if (waiters === undefined) this.#waiters.set(client, [waiter]);
    else waiters.push(waiter);
    this.#length += 1;
  }

  #remove(client: string, waiter: Waiter<Place>): void {
    const waiters = this.#waiters.get(client) ?? [];
    waiters.splice(waiters.indexOf(waiter), 1);
    if (waiters.length === 0) this.#waiters.delete(client);
    this.#length -= 1;
  }
}

function busy(reason: string): GateError {
  return new GateError("upstream_busy", { reason, retryAfter: 1 });
}
