import type { EventEmitter } from "node:events";
import type { UpstreamLoad } from "../../core/request/forwarder.ts";
import type { Route } from "../../core/request/route.ts";
import type { Clock } from "../../lib/clock.ts";
import { AnswerLimits } from "../http/answer-timeouts.ts";
import { type Requester, InFlightCounts } from "./in-flight-counts.ts";
import { type SlotHolder, StalledRequests } from "./stalled-requests.ts";
import { createTarget, type Target } from "./target.ts";
import type { UpstreamTls } from "./target-origin.ts";
import { FairQueue, type QueueLimits } from "./fair-queue.ts";

/** One upstream of the configuration. Times are in milliseconds. */
export interface UpstreamOptions {
  readonly name: string;
  /** At least one. */
  readonly targets: readonly string[];
  readonly tls?: UpstreamTls | undefined;
  /** The maximum number of requests in flight per target. */
  readonly connections: number;
  /** For requests that arrive when all targets are full. */
  readonly queue: QueueLimits;
  readonly timeouts: { readonly connect: number; readonly response: number; readonly idle: number };
  readonly websocket: { readonly handshake: number; readonly idle: number };
}

/** Interval between preemption attempts while requests wait, in milliseconds. */
const PREEMPTION_INTERVAL_MS = 100;

/**
 * The fraction of each target's slots that is reserved for requesters with few slots: one in this many. So a client
 * that takes all other slots, or stalls them by not reading, keeps nobody out.
 */
const RESERVED_FRACTION = 8;

/** A group of interchangeable targets. */
export class Upstream {
  readonly name: string;
  readonly options: UpstreamOptions;
  readonly #answerLimits: AnswerLimits;
  readonly #limitsOfRoutes = new WeakMap<Route, AnswerLimits>();
  readonly #clock: Clock;
  readonly #targets: readonly Target[];
  readonly #inFlight = new InFlightCounts();
  readonly #stalled = new StalledRequests(this.#inFlight);
  readonly #queue: FairQueue<Target>;
  #preempting: NodeJS.Timeout | undefined;
  #turn = 0;

  constructor(options: UpstreamOptions, clock: Clock) {
    this.#clock = clock;
    this.name = options.name;
    this.options = options;
    const { tls, connections, timeouts, queue } = options;
    this.#answerLimits = new AnswerLimits(timeouts, clock);
    this.#queue = new FairQueue(queue, this.#inFlight);
    this.#targets = options.targets.map((address) =>
      createTarget({ address, tls, connections, connectMs: timeouts.connect }),
    );
  }

  /** The timeouts for answers on a route: its own, or those of the upstream. */
  answerLimitsFor(route: Route): AnswerLimits {
    if (route.timeouts === undefined) return this.#answerLimits;
    const known = this.#limitsOfRoutes.get(route);
    if (known !== undefined) return known;
    const timeouts = { ...this.options.timeouts, ...route.timeouts };
    const limits = new AnswerLimits(timeouts, this.#clock);
    this.#limitsOfRoutes.set(route, limits);
    return limits;
  }

  /**
   * Takes a slot at the next target that has room (round robin), or returns undefined. The caller releases the slot.
   */
  take(requester: Requester): Target | undefined {
    for (let tried = 0; tried < this.#targets.length; tried += 1) {
      const target = this.#targets[this.#turn];
      this.#turn = (this.#turn + 1) % this.#targets.length;
      if (target === undefined) continue;
      if (target.inFlight < unreservedSlots(target) || this.#mayTakeReserved(target, requester)) {
        target.inFlight += 1;
        this.#inFlight.add(requester);
        return target;
      }
    }
    return undefined;
  }

  #mayTakeReserved({ inFlight, connections }: Target, requester: Requester): boolean {
    return inFlight < connections && this.#inFlight.of(requester) <= this.#inFlight.fewLimit;
  }

  /**
   * Waits for a slot at the first target that has room.
   *
   * @param connection closes when the client has left.
   * @returns undefined if the client left.
   * @throws GateError `upstream_busy` if too many requests wait, or after the time limit.
   */
  wait(requester: Requester, connection: EventEmitter): Promise<Target | undefined> {
    const joined = this.#queue.join(requester, connection);
    this.#preemptFor(requester, this.#queue.lengthOf(requester) - 1);
    this.#preempting ??= setInterval(
      () => this.#preemptForWaiting(),
      PREEMPTION_INTERVAL_MS,
    ).unref();
    return joined;
  }

  /**
   * A request is stalled by its client, and can be preempted from `slowAt` (monotonic milliseconds). Otherwise
   * clients that read or send a few bytes a second could hold all connections to a backend (slowhttptest -X, -B).
   */
  stalled(holder: SlotHolder, slowAt: number): void {
    this.#stalled.stalled(holder, slowAt);
  }

  resumed(holder: SlotHolder): void {
    this.#stalled.resumed(holder);
  }

  /** Releases a slot, and grants it to the next waiting request. */
  release(target: Target, requester: Requester): void {
    this.#stalled.released(requester);
    // `target.inFlight` stays the same if the slot is granted again.
    const granted = this.#queue.grant(
      target,
      target.inFlight > unreservedSlots(target) ? this.#inFlight.fewLimit : Infinity,
    );
    if (granted === undefined) target.inFlight -= 1;
    else this.#inFlight.add(granted);
  }

  #preemptForWaiting(): void {
    if (this.#queue.length === 0) {
      clearInterval(this.#preempting);
      this.#preempting = undefined;
    }
    for (const requester of this.#queue.requesters()) {
      let ahead = 0;
      while (ahead < this.#queue.lengthOf(requester) && this.#preemptFor(requester, ahead)) {
        ahead += 1;
      }
    }
  }

  /** Preempts a slot for a request with this many requests of the same requester ahead of it. */
  #preemptFor(requester: Requester, ahead: number): boolean {
    if (this.#queue.length <= this.#stalled.preempted) return false;
    return this.#stalled.preemptFor(
      requester,
      this.#inFlight.of(requester) + ahead,
      this.#clock.monotonic(),
    );
  }

  get load(): UpstreamLoad {
    const inFlight = this.#targets.reduce((sum, target) => sum + target.inFlight, 0);
    return { inFlight, waiting: this.#queue.length };
  }

  /** Closes all connections once their requests have finished. */
  async close(): Promise<void> {
    await Promise.all(this.#targets.map((target) => target.pool.close()));
  }
}

/** The slots of a target that are open to everyone. */
function unreservedSlots({ connections }: Target): number {
  return connections - Math.floor(connections / RESERVED_FRACTION);
}
