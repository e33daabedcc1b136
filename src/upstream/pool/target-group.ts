import type { Clock } from "../../lib/clock.ts";
import { type Balancer, createBalancer } from "./balancers.ts";
import { HealthCheck } from "./health-check.ts";
import type { Requester } from "./in-flight-counts.ts";
import type { Target } from "./target.ts";
import { TargetList } from "./target-list.ts";
import { type EjectionOptions, TargetStates } from "./target-states.ts";
import type { UpstreamEvents, UpstreamOptions } from "./upstream-options.ts";

/** The default of the configuration. */
const DEFAULT_EJECTION: EjectionOptions = { failures: 5, for: 30_000, most: 0.5 };

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
  readonly #health: HealthCheck | undefined;
  /** Functions that end the health checks. */
  readonly #checks = new Map<Target, () => void>();
  /** Undefined for plain round robin. */
  readonly #balance: Balancer | undefined;
  #noneAvailable = false;
  #turn = 0;

  constructor(options: UpstreamOptions, { clock, hasRoom, back, events }: GroupOptions) {
    const { weights, balance = "roundRobin", slowStart = 0, ejection = DEFAULT_EJECTION } = options;
    const { name, health } = options;
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
    if (health !== undefined) this.#health = new HealthCheck(health);
    this.states = new TargetStates(this.targets, ejection, clock, {
      changed: (target, available, why) => {
        this.#judge();
        events?.targetChanged(name, target.address, available, why);
        // A target on trial is not tried with requests that already wait.
        if (available && target.trialUntil === undefined) back(target);
      },
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
    const end = this.#health.start(target, (healthy, why) => states.checked(target, healthy, why));
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
