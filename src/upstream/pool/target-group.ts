import type { Clock } from "../../lib/clock.ts";
import { type Balancer, createBalancer } from "./balance.ts";
import { HealthCheck } from "./health-check.ts";
import type { Requester } from "./in-flight-counts.ts";
import { createTarget, type Target } from "./target.ts";
import { type EjectionOptions, startChecks, TargetStates } from "./target-states.ts";
import type { UpstreamEvents, UpstreamOptions } from "./upstreams.ts";

/** Where the configuration says nothing. */
const USUAL_EJECTION: EjectionOptions = { failures: 5, for: 30_000, most: 0.5 };

/** The targets of an upstream, and the choice among them. */
export class TargetGroup {
  readonly targets: readonly Target[];
  /** Undefined for a single target, which is always used. */
  readonly states: TargetStates | undefined;
  readonly #options: UpstreamOptions;
  readonly #hasRoom: (target: Target, requester: Requester) => boolean;
  /** Undefined for plain round robin. */
  readonly #balance: Balancer | undefined;
  #endChecks: (() => void) | undefined;
  #noneAvailable = false;
  #turn = 0;

  /** @param back called when a target is used again. */
  constructor(
    options: UpstreamOptions,
    clock: Clock,
    hasRoom: (target: Target, requester: Requester) => boolean,
    back: (target: Target) => void,
    events: UpstreamEvents | undefined,
  ) {
    const { weights, balance = "roundRobin", slowStart = 0, ejection = USUAL_EJECTION } = options;
    const { name, tls, protocol, connections, timeouts } = options;
    this.#options = options;
    this.#hasRoom = hasRoom;
    this.targets = options.targets.map((address, index) =>
      createTarget({
        ...{ address, tls, protocol, connections, weight: weights?.[index] },
        connectMs: timeouts.connect,
      }),
    );
    const isPlain = balance === "roundRobin" && weights === undefined && slowStart === 0;
    if (!isPlain) this.#balance = createBalancer(balance, () => clock.monotonic(), slowStart);
    if (this.isAlone) return;
    this.states = new TargetStates(this.targets, ejection, clock, {
      changed: (target, available, why) => {
        this.#noneAvailable = this.targets.every((each) => !each.available);
        events?.targetChanged(name, target.address, available, why);
        if (available) back(target);
      },
    });
  }

  /** Whether there is no other target to turn to. */
  get isAlone(): boolean {
    return this.targets.length === 1;
  }

  /** Starts the health checks, if any, until `close`. */
  startChecks(): void {
    const { health } = this.#options;
    if (health === undefined || this.states === undefined) return;
    this.#endChecks = startChecks(this.targets, this.states, new HealthCheck(health));
  }

  /**
   * Chooses a target that has room; undefined if none has.
   *
   * @param avoid a target that has failed this request: another is chosen if one has room.
   */
  choose(requester: Requester, avoid: Target | undefined): Target | undefined {
    const target =
      this.#balance === undefined
        ? this.#next(requester, avoid)
        : this.#balance(this.#candidates(requester, avoid), requester.client);
    return target === undefined && avoid !== undefined ? this.choose(requester, undefined) : target;
  }

  /** Whether requests go to a target now. */
  isUsed({ available }: Target): boolean {
    return available || this.#noneAvailable;
  }

  /** Closes all connections once their requests have finished. */
  async close(): Promise<void> {
    this.#endChecks?.();
    this.states?.close();
    await Promise.all(this.targets.map((target) => target.pool.close()));
  }

  /** Plain round robin. */
  #next(requester: Requester, avoid: Target | undefined): Target | undefined {
    for (let tried = 0; tried < this.targets.length; tried += 1) {
      const target = this.targets[this.#turn];
      this.#turn = (this.#turn + 1) % this.targets.length;
      if (target !== undefined && target !== avoid && this.#takes(target, requester)) return target;
    }
    return undefined;
  }

  #candidates(requester: Requester, avoid: Target | undefined): Target[] {
    return this.targets.filter((target) => target !== avoid && this.#takes(target, requester));
  }

  #takes(target: Target, requester: Requester): boolean {
    return this.isUsed(target) && this.#hasRoom(target, requester);
  }
}
