import type { Shares } from "./shares.ts";

/** Whoever has a place at a backend, or wants one. */
export interface Claimant {
  /** Whose place it is: addresses that `networkOf` counts as one are one client. */
  readonly client: string;
}

/** Who can be asked for its place while it waits for its client to read or to send. */
export interface Holder extends Claimant {
  /** Ends what it does, and thereby gives its place back, a moment later. */
  giveWay(): void;
}

/** Those who have a place, and cannot go on because of their own clients. */
export class SlowHolders {
  /** The places of each client; those of whom has been asked to give way are not counted any more. */
  readonly #places: Shares;
  /** Since when, monotonic; who waits longest comes first. */
  readonly #held = new Map<Holder, number>();
  readonly #leaving = new Set<Claimant>();

  constructor(places: Shares) {
    this.#places = places;
  }

  /** How many have been asked, and have not given their places back yet. */
  get leaving(): number {
    return this.#leaving.size;
  }

  /** Told of who waits for its client, and since when (monotonic milliseconds); of the same one again, it begins anew. */
  held(holder: Holder, now: number): void {
    this.#held.delete(holder);
    this.#held.set(holder, now);
  }

  flows(holder: Holder): void {
    this.#held.delete(holder);
  }

  /** Told of every place that is given back. */
  gone(claimant: Claimant): void {
    if (!this.#leaving.delete(claimant)) this.#places.remove(claimant.client);
  }

  /**
   * Asks the slow one of the client with the most places to give way, of these the one that waits longest. Whoever asks for a
   * place gets nobody's who has not more than it has itself, except of its own client: a stranger who takes all places and
   * asks for more takes none of the others'.
   *
   * @param client for whom; it would have so many places by then without this one.
   * @param before monotonic milliseconds: who waits since later is not slow yet.
   * @returns whether anybody was asked.
   */
  ask(client: string, places: number, before: number): boolean {
    let most = places;
    let heaviest: Holder | undefined;
    let own: Holder | undefined;
    for (const [holder, since] of this.#held) {
      if (since > before) break;
      const held = this.#places.of(holder.client);
      if (held > most) {
        most = held;
        heaviest = holder;
      }
      if (holder.client === client) own ??= holder;
    }
    const asked = heaviest ?? own;
    if (asked === undefined) return false;
    this.#held.delete(asked);
    this.#places.remove(asked.client);
    this.#leaving.add(asked);
    asked.giveWay();
    return true;
  }
}
