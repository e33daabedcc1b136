import type { Closing } from "./fair-queue.ts";
import type { TargetState, UpstreamLoad } from "../../core/request/forwarder.ts";
import type { Route } from "../../core/route/route.ts";
import type { Clock } from "../../lib/clock.ts";
import { AnswerLimits } from "../http/answer-timeouts.ts";
import { type Requester, InFlightCounts } from "./in-flight-counts.ts";
import { type SlotHolder, StalledRequests } from "./stalled-requests.ts";
import { stateOf, type Target } from "./target.ts";
import { FairQueue } from "./fair-queue.ts";
import { failure } from "../http/failures.ts";
import { RetryBudget } from "./retry-budget.ts";
import { TargetGroup } from "./target-group.ts";
import type { UpstreamOptions } from "./upstream-options.ts";
import type { TargetStates } from "./target-states.ts";
import type { UpstreamEvents } from "./upstream-events.ts";

/** Interval between preemption attempts while requests wait, in milliseconds. */
const PREEMPTION_INTERVAL_MS = 100;

/**
 * The fraction of each target's slots that is reserved for requesters with few slots: one in this many. So a client
 * that takes all other slots, or stalls them by not reading, keeps no one out.
 */
const RESERVED_FRACTION = 8;

/** A group of interchangeable targets. */
export class Upstream {
  readonly name: string;
  readonly options: UpstreamOptions;
  readonly #answerLimits: AnswerLimits;
  readonly #limitsOfRoutes = new WeakMap<Route, AnswerLimits>();
  readonly #clock: Clock;
  readonly #inFlight = new InFlightCounts();
  readonly #stalled = new StalledRequests(this.#inFlight);
  readonly #queue: FairQueue<Target>;
  readonly #retries = new RetryBudget();
  readonly #group: TargetGroup;
  #preempting: NodeJS.Timeout | undefined;

  constructor(options: UpstreamOptions, clock: Clock, events?: UpstreamEvents) {
    this.#clock = clock;
    this.name = options.name;
    this.options = options;
    const { timeouts, queue } = options;
    this.#answerLimits = new AnswerLimits(timeouts, clock);
    this.#queue = new FairQueue(queue, this.#inFlight);
    this.#group = new TargetGroup(options, {
      hasRoom: (target, requester) =>
        target.inFlight < unreservedSlots(target) || this.#mayTakeReserved(target, requester),
      back: (target) => this.#grantRoomAt(target),
      ...{ clock, events },
    });
  }

  /** Whether requests may reach its targets over HTTP/2. */
  get speaksHttp2(): boolean {
    return (this.options.protocol ?? "http1") !== "http1";
  }

  /** The state of the targets; undefined for a single one, which is always used. */
  get states(): TargetStates | undefined {
    return this.#group.states;
  }

  /** Whether there is no other target. */
  get isAlone(): boolean {
    return this.#group.isAlone;
  }

  /** Starts to resolve names and to check targets, until `close`. */
  start(): void {
    this.#group.start();
  }

  /** Takes a retry from the budget, if one is left. Requests that failed at an ejected target need no budget. */
  takeRetry(from?: Target): boolean {
    return (from !== undefined && !this.#group.isUsed(from)) || this.#retries.take();
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
   * Takes a slot at a target that has room, or returns undefined. The caller releases the slot.
   * @param avoid a target that has failed this request: another one is used if it has room.
   */
  take(requester: Requester, avoid?: Target): Target | undefined {
    if (avoid === undefined) this.#retries.earn();
    const target = this.#group.choose(requester, avoid);
    if (target === undefined) return undefined;
    target.inFlight += 1;
    this.#inFlight.add(requester);
    return target;
  }

  /** Grants slots of a target that is used again, or for the first time, to waiting requests. */
  #grantRoomAt(target: Target): void {
    while (target.inFlight < unreservedSlots(target)) {
      const granted = this.#queue.grant(target, Infinity);
      if (granted === undefined) return;
      target.inFlight += 1;
      this.#inFlight.add(granted);
    }
  }

  #mayTakeReserved({ inFlight, connections }: Target, requester: Requester): boolean {
    return inFlight < connections && this.#inFlight.of(requester) <= this.#inFlight.fewLimit;
  }

  /**
   * Waits for a slot at the first target that has room.
   *
   * @param connection closes when the client has left.
   * @returns undefined if the client left.
   * @throws GateError `upstream_busy` if too many requests wait, or after the time limit; `dns` without a target.
   */
  wait(requester: Requester, connection: Closing): Promise<Target | undefined> {
    if (this.#group.isUnresolved) return Promise.reject(failure("dns", undefined));
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
    const most = target.inFlight > unreservedSlots(target) ? this.#inFlight.fewLimit : Infinity;
    const granted = this.#group.isUsed(target) ? this.#queue.grant(target, most) : undefined;
    if (granted === undefined) {
      target.inFlight -= 1;
      this.#group.released(target);
    } else this.#inFlight.add(granted);
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
    const { targets, leaving } = this.#group;
    const inFlight = targets.reduce((sum, target) => sum + target.inFlight, leaving);
    const leftOut = targets.filter(({ available }) => !available).length;
    return { inFlight, waiting: this.#queue.length, leftOut, targets: targets.length };
  }

  /** The state of each target. */
  get targets(): TargetState[] {
    const { protocol = "http1" } = this.options;
    return this.#group.targets.map((target) => ({
      ...{ upstream: this.name, protocol },
      ...stateOf(target),
    }));
  }

  /** Closes all connections once their requests have finished. */
  async close(): Promise<void> {
    await this.#group.close();
  }
}

/** The slots of a target that are open to everyone. */
function unreservedSlots({ connections }: Target): number {
  return connections - Math.floor(connections / RESERVED_FRACTION);
}
