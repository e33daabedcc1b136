import type { Configuration } from "../../config/configuration.ts";
import { type Closing, FairQueue } from "./fair-queue.ts";
import { SentRequest, stateOf, type Target, type TargetState } from "./target.ts";
import type { Route } from "../../core/route/route.ts";
import { callEach } from "../../lib/async/isolation.ts";
import { TimeoutList } from "../../lib/async/timeout-list.ts";
import type { Clock } from "../../lib/clock.ts";
import { InFlightCounts, type Requester } from "./in-flight-counts.ts";
import { StalledRequests } from "./slot.ts";
import { failure } from "../http/failures.ts";
import { TargetGroup, type TargetStates } from "./target-group.ts";
import type { UpstreamTls } from "./target-origin.ts";

/** Interval between preemption attempts while requests wait, in milliseconds. */
const PREEMPTION_INTERVAL_MS = 100;

/** How often targets are looked at that answer nothing, in milliseconds. */
const WATCH_EVERY_MS = 1_000;

/** Retries that are always possible, so that a quiet upstream can repeat its first failure. */
const MAX_RETRIES = 10;
/**
 * Each request earns this part of a retry: at most 20 % of the requests are sent again, so that a failing backend does
 * not get a multiple of its load.
 */
const EARNED_RETRIES = 0.2;

type Written = Configuration["upstreams"][string];

/** One upstream of the configuration, with the contents of its PEM files. */
export interface UpstreamOptions extends Omit<Written, "tls"> {
  readonly name: string;
  readonly tls?: UpstreamTls | undefined;
}

export type HealthOptions = NonNullable<Written["health"]>;

export type ResolveOptions = NonNullable<Written["resolve"]>;

/** Receives the events of targets. */
export interface UpstreamEvents {
  /** A target is left out, or used again. */
  targetChanged(upstream: string, target: string, available: boolean, why: string): void;
  /** A target has answered nothing for this long, in milliseconds, although a request waits; or it answers again. */
  targetSilent(upstream: string, target: string, ms: number): void;
  targetAnswers(upstream: string, target: string): void;
  /** The addresses of a target's name have changed. */
  targetResolved(upstream: string, target: string, addresses: readonly string[]): void;
  /** The name of a target was looked up. @param fault why no address was found. */
  targetLookedUp(upstream: string, target: string, fault: string | undefined): void;
}

/** A group of interchangeable targets. */
export class Upstream {
  readonly name: string;
  readonly options: UpstreamOptions;
  /** Whether requests may reach its targets over HTTP/2. */
  readonly speaksHttp2: boolean;
  /** The state of the targets; undefined for a single one, which is always used. */
  readonly states: TargetStates | undefined;
  readonly #answerLimits: AnswerLimits;
  readonly #limitsOfRoutes = new WeakMap<Route, AnswerLimits>();
  /** All of them, by their times: reloads bring new routes, but seldom new times. */
  readonly #limits = new Map<string, AnswerLimits>();
  readonly #clock: Clock;
  readonly #inFlight = new InFlightCounts();
  /** The requests that are stalled by their clients, and can be preempted. */
  readonly stalled = new StalledRequests(this.#inFlight);
  readonly #queue: FairQueue<Target>;
  readonly #group: TargetGroup;
  /** The single target of the group, if it never has another one: nothing needs to be chosen. */
  readonly #only: Target | undefined;
  /** The retries that may be made. */
  #retries = MAX_RETRIES;
  #preempting: NodeJS.Timeout | undefined;
  readonly #events: UpstreamEvents | undefined;
  #watching: NodeJS.Timeout | undefined;

  constructor(options: UpstreamOptions, clock: Clock, events?: UpstreamEvents) {
    this.#clock = clock;
    this.#events = events;
    this.name = options.name;
    this.options = options;
    this.speaksHttp2 = options.protocol !== "http1";
    const { timeouts, queue } = options;
    this.#answerLimits = this.#limitsOf(timeouts);
    this.#queue = new FairQueue(queue, this.#inFlight);
    this.#group = new TargetGroup(options, {
      hasRoom: (target, requester) => this.#hasRoom(target, requester),
      back: (target) => this.#grantRoomAt(target),
      clock,
      events,
    });
    this.states = this.#group.states;
    this.#only = this.#group.only;
  }

  /** Whether there is no other target. */
  get isAlone(): boolean {
    return this.#group.isAlone;
  }

  /** Starts to resolve names and to check targets, until `close`. */
  start(): void {
    this.#watching ??= setInterval(() => this.#watchSilence(), WATCH_EVERY_MS).unref();
    this.#group.start();
  }

  /** Takes a retry from the budget, if one is left. Requests that failed at an ejected target need no budget. */
  takeRetry(from?: Target): boolean {
    if (from !== undefined && !this.#group.isUsed(from)) return true;
    if (this.#retries < 1) return false;
    this.#retries -= 1;
    return true;
  }

  /** The timeouts for answers on a route: its own, or those of the upstream. */
  answerLimitsFor(route: Route): AnswerLimits {
    if (route.timeouts === undefined) return this.#answerLimits;
    const known = this.#limitsOfRoutes.get(route);
    if (known !== undefined) return known;
    const limits = this.#limitsOf({ ...this.options.timeouts, ...route.timeouts });
    this.#limitsOfRoutes.set(route, limits);
    return limits;
  }

  #limitsOf({ response, idle }: UpstreamOptions["timeouts"]): AnswerLimits {
    const key = `${response} ${idle}`;
    const limits = this.#limits.get(key) ?? {
      response: new TimeoutList(response, this.#clock),
      idle: new TimeoutList(idle, this.#clock),
    };
    this.#limits.set(key, limits);
    return limits;
  }

  /**
   * Takes a slot at a target that has room, or returns undefined. The caller releases the slot.
   * @param avoid a target that has failed this request: another one is used if it has room.
   */
  take(requester: Requester, avoid?: Target): Target | undefined {
    if (avoid === undefined && this.#retries < MAX_RETRIES) this.#retries += EARNED_RETRIES;
    let target = this.#only;
    if (target === undefined || target.inFlight >= target.unreserved) {
      target = this.#group.choose(requester, avoid);
    }
    if (target === undefined) return undefined;
    target.inFlight += 1;
    this.#inFlight.add(requester);
    return target;
  }

  #hasRoom(target: Target, requester: Requester): boolean {
    return target.inFlight < target.unreserved || this.#mayTakeReserved(target, requester);
  }

  /** Grants slots of a target that is used again, or for the first time, to waiting requests. */
  #grantRoomAt(target: Target): void {
    while (target.inFlight < target.unreserved) {
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

  /** Releases a slot, and grants it to the next waiting request. */
  release(target: Target, requester: Requester): void {
    const { preempted } = this.stalled;
    if (preempted.size === 0 || !preempted.delete(requester)) this.#inFlight.remove(requester);
    if (this.#queue.length > 0 && this.#grantAgain(target)) return;
    target.inFlight -= 1;
    if (target.gone) this.#group.released(target);
  }

  /** Grants a slot that is released to a waiting request, if one may have it. */
  #grantAgain(target: Target): boolean {
    if (!this.#group.isUsed(target)) return false;
    const most = target.inFlight > target.unreserved ? this.#inFlight.fewLimit : Infinity;
    const granted = this.#queue.grant(target, most);
    if (granted !== undefined) this.#inFlight.add(granted);
    return granted !== undefined;
  }

  #preemptForWaiting(): void {
    if (this.#queue.length === 0) {
      clearInterval(this.#preempting);
      this.#preempting = undefined;
    }
    callEach(this.#queue.requesters(), (requester) => {
      let ahead = 0;
      while (ahead < this.#queue.lengthOf(requester) && this.#preemptFor(requester, ahead)) {
        ahead += 1;
      }
    });
  }

  /** Preempts a slot for a request with this many requests of the same requester ahead of it. */
  #preemptFor(requester: Requester, ahead: number): boolean {
    if (this.#queue.length <= this.stalled.preempted.size) return false;
    return this.stalled.preemptFor(
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
    const now = this.#clock.monotonic();
    const oldest = this.#oldestWaiting();
    return this.#group.targets.map((target) =>
      stateOf(this.options, target, now - (oldest.get(target) ?? now)),
    );
  }

  /**
   * Since when the oldest request waits for its answer from each target, in monotonic milliseconds: since its last byte was
   * sent, or an interim response came.
   */
  #oldestWaiting(): ReadonlyMap<Target, number> {
    const oldest = new Map<Target, number>();
    for (const { response } of this.#limits.values()) {
      for (const sent of response.entries()) {
        if (!(sent instanceof SentRequest) || sent.target === undefined) continue;
        if (!sent.waitsForBackend) continue;
        const other = oldest.get(sent.target) ?? Infinity;
        oldest.set(sent.target, Math.min(sent.deadline - response.ms, other));
      }
    }
    return oldest;
  }

  /** Reports targets that have answered nothing for a quarter of the response timeout, and those that answer again. */
  #watchSilence(): void {
    const now = this.#clock.monotonic();
    const oldest = this.#oldestWaiting();
    for (const target of this.#group.targets) {
      const { address, answeredAt, silentAt } = target;
      if (silentAt === undefined) {
        const silentMs = now - Math.max(oldest.get(target) ?? now, answeredAt);
        if (silentMs < this.options.timeouts.response / 4) continue;
        target.silentAt = now;
        this.#events?.targetSilent(this.name, address, silentMs);
      } else if (answeredAt > silentAt) {
        target.silentAt = undefined;
        this.#events?.targetAnswers(this.name, address);
      }
    }
  }

  /** Closes all connections once their requests have finished. */
  async close(): Promise<void> {
    clearInterval(this.#watching);
    await this.#group.close();
  }
}

/** The timeouts for the answers of an upstream. */
export type AnswerLimits = Readonly<Record<"response" | "idle", TimeoutList>>;

/** The current load of an upstream. */
export interface UpstreamLoad {
  /** Requests in flight at its targets. */
  readonly inFlight: number;
  /** Requests in its queue. */
  readonly waiting: number;
  /** Targets that are currently not used. */
  readonly leftOut: number;
  /** All of its targets. */
  readonly targets: number;
}
