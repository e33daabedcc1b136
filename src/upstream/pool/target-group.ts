import type { Clock } from "../../lib/clock.ts";
import { type Balancer, createBalancer } from "./balancers.ts";
import { startChecks } from "./health-check.ts";
import type { Requester } from "./in-flight-counts.ts";
import type { Target } from "./target.ts";
import { TargetList } from "./target-list.ts";
import type { HealthOptions, UpstreamEvents, UpstreamOptions } from "./upstreams.ts";
import type { UpstreamErrorReason } from "../../core/request/outcome.ts";
import { NOT_CONNECTED } from "../http/failures.ts";

/** A target is left out, or used again. @param why the result of its checks or requests. */
type TargetChanged = (target: Target, available: boolean, why: string) => void;

/** Repeated ejections last longer, up to this many times `for`. */
const LONGEST_FACTOR = 10;

/**
 * Tracks which of several targets can be used. A target is left out while its health checks fail, and for a while after it
 * failed requests: at once if it cannot be reached, otherwise after `failures` in a row, so that no single request can
 * cause it (Envoy's outlier detection counts likewise). Afterwards it is on trial until it has
 * answered. If all are left out, the upstream uses all.
 */
export class TargetStates {
  readonly #targets: readonly Target[];
  readonly #ejection: UpstreamOptions["ejection"];
  readonly #clock: Clock;
  readonly #changed: TargetChanged;
  readonly #timers = new Map<Target, NodeJS.Timeout>();

  constructor(
    targets: readonly Target[],
    ejection: UpstreamOptions["ejection"],
    clock: Clock,
    changed: TargetChanged,
  ) {
    this.#targets = targets;
    this.#ejection = ejection;
    this.#clock = clock;
    this.#changed = changed;
  }

  /** A target answered. */
  answered(target: Target, status: number): void {
    target.trialUntil = undefined;
    if (status >= 500) this.#count(target, String(status));
    else {
      target.failures = 0;
      target.ejections = 0;
    }
  }

  /** A request failed. @param sentAt when it was sent, in monotonic milliseconds. */
  failed(target: Target, reason: UpstreamErrorReason, sentAt: number): void {
    // Neither says anything about the target.
    if (reason === "aborted" || reason === "resource_exhausted") return;
    const silent = target.answeredAt < sentAt;
    // A time-out or a reset may be due to one request only.
    if (silent && NOT_CONNECTED.has(reason)) this.#eject(target, reason);
    else this.#count(target, reason);
  }

  /** A health check has decided. */
  checked(target: Target, healthy: boolean, why: string): void {
    if (target.healthy === healthy) return;
    target.healthy = healthy;
    this.#update(target, why);
  }

  /** A target was removed. */
  forget(target: Target): void {
    clearTimeout(this.#timers.get(target));
    this.#timers.delete(target);
  }

  close(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  #count(target: Target, why: string): void {
    target.failures += 1;
    if (target.failures >= this.#ejection.failures) this.#eject(target, why);
  }

  #eject(target: Target, why: string): void {
    const ejected = this.#targets.filter((each) => each.ejected).length;
    if (target.ejected || target.gone || ejected >= this.#mostEjected) return;
    target.ejected = true;
    target.ejections += 1;
    const ms = this.#ejection.for * Math.min(target.ejections, LONGEST_FACTOR);
    this.#timers.set(target, setTimeout(() => this.#readmit(target), ms).unref());
    this.#update(target, why);
  }

  get #mostEjected(): number {
    const { length } = this.#targets;
    return Math.min(Math.max(1, Math.floor(length * this.#ejection.most)), length - 1);
  }

  /** One more failure is enough to eject it again. */
  #readmit(target: Target): void {
    target.ejected = false;
    target.failures = this.#ejection.failures - 1;
    target.trialUntil = this.#clock.monotonic() + this.#ejection.for;
    this.#update(target, "the time is over");
  }

  #update(target: Target, why: string): void {
    const available = target.healthy && !target.ejected;
    if (available === target.available) return;
    target.available = available;
    if (available) target.backSince = this.#clock.monotonic();
    this.#changed(target, available, why);
  }
}

interface GroupOptions {
  readonly clock: Clock;
  readonly hasRoom: (target: Target, requester: Requester) => boolean;
  /** Called when a target is used again, or for the first time. */
  readonly back: (target: Target) => void;
  readonly events: UpstreamEvents | undefined;
}

/** The targets of an upstream, and the choice among them. */
export class TargetGroup {
  /** Undefined for `only`. */
  readonly states: TargetStates | undefined;
  readonly #list: TargetList;
  readonly #clock: Clock;
  readonly #hasRoom: (target: Target, requester: Requester) => boolean;
  readonly #health: HealthOptions | undefined;
  /** Functions that end the health checks. */
  readonly #checks = new Map<Target, () => void>();
  /** Undefined for plain round robin. */
  readonly #balance: Balancer | undefined;
  #noneAvailable = false;
  #turn = 0;

  constructor(options: UpstreamOptions, { clock, hasRoom, back, events }: GroupOptions) {
    const { name, weights, balance, slowStart = 0, ejection, health } = options;
    this.#hasRoom = hasRoom;
    this.#clock = clock;
    const isPlain = balance === "roundRobin" && weights === undefined && slowStart === 0;
    if (!isPlain) this.#balance = createBalancer(balance, () => clock.monotonic(), slowStart);
    this.#list = new TargetList(options, events, {
      came: (target, isFirst) => {
        if (!isFirst) target.backSince = clock.monotonic();
        this.#judge();
        this.#startCheck(target);
        back(target);
      },
      left: (target) => {
        this.states?.forget(target);
        this.#endCheck(target);
        this.#judge();
      },
    });
    if (options.targets.length === 1 && options.resolve === undefined) return;
    this.#health = health;
    this.states = new TargetStates(this.targets, ejection, clock, (target, available, why) => {
      this.#judge();
      events?.targetChanged(name, target.address, available, why);
      // A target on trial is not tried with requests that already wait.
      if (available && target.trialUntil === undefined) back(target);
    });
  }

  get targets(): readonly Target[] {
    return this.#list.targets;
  }

  /** Requests in flight at targets that were removed. */
  get leaving(): number {
    return this.#list.leaving;
  }

  /** The single target of an upstream that never has another one: it is always used. */
  get only(): Target | undefined {
    return this.states === undefined ? this.targets[0] : undefined;
  }

  /** Whether there is no other target. */
  get isAlone(): boolean {
    return this.targets.length <= 1;
  }

  /** Whether no target is known although every name has been looked up. */
  get isUnresolved(): boolean {
    return this.targets.length === 0 && this.#list.isAnswered;
  }

  /** Starts to resolve names and to check targets, until `close`. */
  start(): void {
    for (const target of this.targets) this.#startCheck(target);
    this.#list.start();
  }

  /**
   * Chooses a target that has room; undefined if none has. A target on trial is chosen only if no other has room.
   *
   * @param avoid a target that has failed this request: another is chosen if one has room.
   */
  choose(requester: Requester, avoid: Target | undefined): Target | undefined {
    return (
      this.#chosen(requester, avoid, false) ??
      (this.states && this.#chosen(requester, avoid, true)) ??
      (avoid && this.choose(requester, undefined))
    );
  }

  /** Whether requests go to a target now. */
  isUsed({ available, gone }: Target): boolean {
    return !gone && (available || this.#noneAvailable);
  }

  /** A target that was removed has one request fewer. */
  released(target: Target): void {
    this.#list.released(target);
  }

  /** Closes all connections once their requests have finished. */
  async close(): Promise<void> {
    for (const end of this.#checks.values()) end();
    this.states?.close();
    await this.#list.close();
  }

  #judge(): void {
    this.#noneAvailable = this.targets.every((each) => !each.available);
  }

  #startCheck(target: Target): void {
    const { states } = this;
    if (this.#health === undefined || states === undefined || this.#checks.has(target)) return;
    const end = startChecks(this.#health, target, (healthy, why) =>
      states.checked(target, healthy, why),
    );
    this.#checks.set(target, end);
  }

  #endCheck(target: Target): void {
    this.#checks.get(target)?.();
    this.#checks.delete(target);
  }

  /** @param onTrial whether targets on trial may be chosen for any request. */
  #chosen(requester: Requester, avoid: Target | undefined, onTrial: boolean): Target | undefined {
    if (this.#balance === undefined) return this.#next(requester, avoid, onTrial);
    const fitting = this.targets.filter((each) => this.#fits(each, requester, avoid, onTrial));
    return this.#balance(fitting, requester.client);
  }

  /** Plain round robin. */
  #next(requester: Requester, avoid: Target | undefined, onTrial: boolean): Target | undefined {
    const { targets } = this;
    for (let tried = 0; tried < targets.length; tried += 1) {
      this.#turn %= targets.length;
      const target = targets[this.#turn];
      this.#turn += 1;
      if (target !== undefined && this.#fits(target, requester, avoid, onTrial)) return target;
    }
    return undefined;
  }

  #fits(
    target: Target,
    requester: Requester,
    avoid: Target | undefined,
    onTrial: boolean,
  ): boolean {
    return (
      target !== avoid &&
      this.isUsed(target) &&
      this.#hasRoom(target, requester) &&
      (onTrial || !this.#isTrial(target, requester))
    );
  }

  /** Whether a target is on trial and should not be tried with this request. */
  #isTrial({ trialUntil, inFlight }: Target, { once }: Requester): boolean {
    if (trialUntil === undefined) return false;
    return inFlight > 0 || (once === true && this.#clock.monotonic() < trialUntil);
  }
}
