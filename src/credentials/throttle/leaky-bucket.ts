import type { Clock } from "../../lib/clock.ts";

/** Allows bursts of `attempts` failures, and on average `attempts` failures in each `withinMs`. */
export interface BucketLimits {
  readonly attempts: number;
  readonly withinMs: number;
}

/**
 * A budget of failures that refills steadily. Each attempt takes its failure from the budget before it begins;
 * otherwise concurrent attempts would all see the same budget.
 */
export interface LeakyBucket {
  /**
   * @param failures recent failures of the requesting network.
   * @returns milliseconds until the budget allows one more failure; 0 if it does now.
   */
  waitMs(failures: number): number;
  take(): void;
  /** Puts back the failure of an attempt that did not fail. */
  giveBack(): void;
  /** Refills at the new rate from now on. Failures already spent stay spent. */
  change(limits: BucketLimits): void;
}

/**
 * Creates a leaky bucket: it stores two numbers, whatever the load. A network without recent failures may spend the
 * whole budget; one with many must leave half of it. The networks that cause a storm use up their half. They reach the
 * other half only as long as they find new networks.
 */
export function createLeakyBucket(limits: BucketLimits, clock: Clock): LeakyBucket {
  let { attempts } = limits;
  let msEach = limits.withinMs / attempts;
  let spent = 0;
  let at = clock.monotonic();

  function refill(): void {
    const now = clock.monotonic();
    spent = Math.max(0, spent - (now - at) / msEach);
    at = now;
  }

  function partOf(failures: number): number {
    return Math.max(1, (attempts / 2) * (1 + 1 / (1 + failures)));
  }

  return {
    waitMs(failures) {
      refill();
      return Math.max(0, (spent + 1 - partOf(failures)) * msEach);
    },
    take() {
      refill();
      spent += 1;
    },
    giveBack() {
      refill();
      spent = Math.max(0, spent - 1);
    },
    change(latest) {
      refill();
      ({ attempts } = latest);
      msEach = latest.withinMs / attempts;
      // Otherwise a small budget would take hours to recover from what a large one had spent.
      spent = Math.min(spent, attempts);
    },
  };
}
