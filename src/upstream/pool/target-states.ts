import type { UpstreamErrorReason } from "../../core/request/outcome.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Target } from "./target.ts";

/** Leaves out targets that fail while they serve requests. Times are in milliseconds. */
export interface EjectionOptions {
  /** Consecutive failures. */
  readonly failures: number;
  readonly for: number;
  /** The part of the targets that may be left out, from 0 to 1. */
  readonly most: number;
}

export interface TargetEvents {
  /** A target is left out, or used again. @param why the result of its checks or requests. */
  changed(target: Target, available: boolean, why: string): void;
}

/** No connection: the target is gone, whatever the request. A time-out or a reset may be due to one request only. */
const GONE: ReadonlySet<UpstreamErrorReason> = new Set([
  ...(["connect_refused", "connect_timeout", "dns", "tls"] satisfies UpstreamErrorReason[]),
]);
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
  readonly #ejection: EjectionOptions;
  readonly #clock: Clock;
  readonly #events: TargetEvents;
  readonly #timers = new Map<Target, NodeJS.Timeout>();

  constructor(
    targets: readonly Target[],
    ejection: EjectionOptions,
    clock: Clock,
    events: TargetEvents,
  ) {
    this.#targets = targets;
    this.#ejection = ejection;
    this.#clock = clock;
    this.#events = events;
  }

  /** A target answered. */
  answered(target: Target, status: number): void {
    target.answeredAt = this.#clock.monotonic();
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
    if (silent && GONE.has(reason)) this.#eject(target, reason);
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
    this.#events.changed(target, available, why);
  }
}
