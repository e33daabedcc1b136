import type { EventEmitter } from "node:events";
import { GateError } from "../core/errors.ts";

export interface WaitingLineLimits {
  /** How many may wait. */
  readonly length: number;
  /** Milliseconds. */
  readonly timeout: number;
}

type Waiter<Place> = (place: Place) => void;

/** Those who wait for a place: first come, first served; nobody for longer than a limit. */
export class WaitingLine<Place> {
  readonly #limits: WaitingLineLimits;
  readonly #waiters = new Set<Waiter<Place>>();

  constructor(limits: WaitingLineLimits) {
    this.#limits = limits;
  }

  get length(): number {
    return this.#waiters.size;
  }

  /** Gives a place to the first in the line; false when nobody waits. */
  serve(place: Place): boolean {
    for (const waiter of this.#waiters) {
      waiter(place);
      return true;
    }
    return false;
  }

  /**
   * Waits for a place.
   *
   * @param client closes when nobody waits any more.
   * @returns undefined when the client left.
   * @throws GateError `upstream_busy` at once when the line is full, or when the time is over.
   */
  join(client: EventEmitter): Promise<Place | undefined> {
    if (this.#waiters.size >= this.#limits.length) return Promise.reject(busy("upstream_busy"));
    const { promise, resolve, reject } = Promise.withResolvers<Place | undefined>();
    const leave = (): void => {
      this.#waiters.delete(waiter);
      client.off("close", onGone);
      clearTimeout(timer);
    };
    const waiter = (place: Place): void => {
      leave();
      resolve(place);
    };
    const onGone = (): void => {
      leave();
      resolve(undefined);
    };
    const timer = setTimeout(() => {
      leave();
      reject(busy("upstream_queue_timeout"));
    }, this.#limits.timeout);
    client.once("close", onGone);
    this.#waiters.add(waiter);
    return promise;
  }
}

function busy(reason: string): GateError {
  return new GateError("upstream_busy", { reason, retryAfter: 1 });
}
