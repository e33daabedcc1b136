import { GateError } from "../../core/request/errors.ts";
import type { Requester, InFlightCounts } from "./in-flight-counts.ts";
import type { UpstreamOptions } from "./upstreams.ts";

interface Waiter<Slot> {
  /** Counts from 1, in order of arrival. */
  readonly arrival: number;
  readonly grant: (slot: Slot) => void;
  readonly refuse: (error: GateError) => void;
}

interface Queue<Slot> {
  readonly requester: Requester;
  /** Oldest first. */
  readonly waiters: Waiter<Slot>[];
}

/** Emits `close` when a client no longer waits. */
export interface Closing {
  once(event: "close", listener: () => void): unknown;
  off(event: "close", listener: () => void): unknown;
}

/**
 * A fair queue for slots with a time limit. Each slot goes to the requester with the fewest slots and, among equals,
 * to the oldest request, so a requester with more requests than all others together does not starve them. An
 * operation takes at most one step per waiting requester.
 */
export class FairQueue<Slot> {
  readonly #limits: UpstreamOptions["queue"];
  /** The slots of each requester. */
  readonly #inFlight: InFlightCounts;
  /** By requester. */
  readonly #queues = new Map<string, Queue<Slot>>();
  /** The number of waiting requests. A field, since each request that ends reads it. */
  length = 0;
  #arrivals = 0;

  constructor(limits: UpstreamOptions["queue"], inFlight: InFlightCounts) {
    this.#limits = limits;
    this.#inFlight = inFlight;
  }

  /** The requesters that wait. */
  *requesters(): Iterable<Requester> {
    for (const { requester } of this.#queues.values()) yield requester;
  }

  /** The number of waiting requests of a requester. */
  lengthOf(requester: Requester): number {
    return this.#queues.get(keyOf(requester))?.waiters.length ?? 0;
  }

  /**
   * Grants a slot to the next request.
   *
   * @param most requesters with more slots than this get none.
   * @returns the requester that got it, or undefined.
   */
  grant(slot: Slot, most: number): Requester | undefined {
    let fewest = most;
    let next: Waiter<Slot> | undefined;
    let granted: Requester | undefined;
    for (const { requester, waiters } of this.#queues.values()) {
      const [first] = waiters;
      const count = this.#inFlight.of(requester);
      if (first === undefined || count > fewest) continue;
      if (count === fewest && next !== undefined && next.arrival < first.arrival) continue;
      fewest = count;
      next = first;
      granted = requester;
    }
    next?.grant(slot);
    return granted;
  }

  /**
   * Waits for a slot.
   *
   * @param connection closes when the client has left.
   * @returns undefined if the client left.
   * @throws GateError `upstream_busy` if the queue is full, if the request is displaced by a requester with fewer
   * requests, or after the time limit.
   */
  join(requester: Requester, connection: Closing): Promise<Slot | undefined> {
    if (this.length >= this.#limits.length && !this.#displaceFor(requester)) {
      return Promise.reject(busy("upstream_busy"));
    }
    const { promise, resolve, reject } = Promise.withResolvers<Slot | undefined>();
    const leave = (): void => {
      this.#remove(requester, waiter);
      connection.off("close", onGone);
      clearTimeout(timer);
    };
    const refuse = (error: GateError): void => {
      leave();
      reject(error);
    };
    const grant = (slot: Slot | undefined): void => {
      leave();
      resolve(slot);
    };
    const onGone = (): void => grant(undefined);
    const timer = setTimeout(() => refuse(busy("upstream_queue_timeout")), this.#limits.timeout);
    connection.once("close", onGone);
    this.#arrivals += 1;
    const waiter = { arrival: this.#arrivals, grant, refuse };
    this.#add(requester, waiter);
    return promise;
  }

  /**
   * Displaces the newest request of the requester with the most requests, waiting and in flight, if it still has more
   * than the newcomer will have.
   */
  #displaceFor(newcomer: Requester): boolean {
    let most = this.#inFlight.of(newcomer) + this.lengthOf(newcomer) + 1;
    let last: Waiter<Slot> | undefined;
    for (const { requester, waiters } of this.#queues.values()) {
      const all = this.#inFlight.of(requester) + waiters.length;
      if (all <= most) continue;
      most = all;
      last = waiters.at(-1);
    }
    last?.refuse(busy("upstream_busy"));
    return last !== undefined;
  }

  #add(requester: Requester, waiter: Waiter<Slot>): void {
    const key = keyOf(requester);
    const queue = this.#queues.get(key);
    if (queue === undefined) this.#queues.set(key, { requester, waiters: [waiter] });
    else queue.waiters.push(waiter);
    this.length += 1;
  }

  #remove(requester: Requester, waiter: Waiter<Slot>): void {
    const key = keyOf(requester);
    const { waiters = [] } = this.#queues.get(key) ?? {};
    waiters.splice(waiters.indexOf(waiter), 1);
    if (waiters.length === 0) this.#queues.delete(key);
    this.length -= 1;
  }
}

/** The separator is unambiguous, since no address contains a space. */
function keyOf({ client, user }: Requester): string {
  return user === undefined ? client : `${client} ${user}`;
}

function busy(reason: "upstream_busy" | "upstream_queue_timeout"): GateError {
  return new GateError("upstream_busy", { reason, retryAfter: 1 });
}
