import type { Requester, InFlightCounts } from "./in-flight-counts.ts";

/** A request that holds a slot and can be preempted. */
export interface SlotHolder extends Requester {
  /** Aborts the request, which releases its slot a moment later. */
  preempt(): void;
}

/** The requests that hold a slot and are stalled by their own clients. */
export class StalledRequests {
  /** The slots of each requester, without those of preempted requests. */
  readonly #inFlight: InFlightCounts;
  /** When each becomes preemptible, in monotonic milliseconds; longest-stalled first. */
  readonly #stalled = new Map<SlotHolder, number>();
  /** Those that were preempted and have not yet released their slots. */
  readonly preempted = new Set<Requester>();

  constructor(inFlight: InFlightCounts) {
    this.#inFlight = inFlight;
  }

  /** A request is stalled, and preemptible from `slowAt` (monotonic milliseconds). Replaces an earlier time. */
  stalled(holder: SlotHolder, slowAt: number): void {
    this.#stalled.delete(holder);
    this.#stalled.set(holder, slowAt);
  }

  resumed(holder: SlotHolder): void {
    this.#stalled.delete(holder);
  }

  /**
   * Preempts the longest-stalled request of the requester with the most slots, and only if it has more than `slots`;
   * a client may always preempt itself. So a stranger who takes all slots cannot preempt the others.
   *
   * @param requester the requester that needs a slot.
   * @param slots the slots that it would have by then without this one.
   * @param now monotonic milliseconds.
   * @returns whether a request was preempted.
   */
  preemptFor(requester: Requester, slots: number, now: number): boolean {
    let most = slots;
    let heaviest: SlotHolder | undefined;
    let own: SlotHolder | undefined;
    for (const [holder, slowAt] of this.#stalled) {
      if (slowAt > now) continue;
      const count = this.#inFlight.of(holder);
      if (count > most) {
        most = count;
        heaviest = holder;
      }
      if (holder.client === requester.client) own ??= holder;
    }
    const victim = heaviest ?? own;
    if (victim === undefined) return false;
    this.#stalled.delete(victim);
    this.#inFlight.remove(victim);
    this.preempted.add(victim);
    victim.preempt();
    return true;
  }
}
