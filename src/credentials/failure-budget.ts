import type { Clock } from "../lib/clock.ts";

/** So many failures in a burst, and on average no more than so many in each `withinMs`. */
export interface BudgetLimits {
  readonly attempts: number;
  readonly withinMs: number;
}

/**
 * One budget of failures that refills steadily. Each attempt takes its failure out before it begins: else all that begin
 * at the same moment would find the budget as it was before the first of them.
 */
export interface FailureBudget {
  /**
   * @param failures how often the network that asks has failed lately.
   * @returns milliseconds until it can be given one more failure; 0 when it can be now.
   */
  waitMs(failures: number): number;
  take(): void;
  /** For an attempt that did not fail. */
  giveBack(): void;
  /** From now on it refills by other limits; what was taken out of it stays taken. */
  change(limits: BudgetLimits): void;
}

/**
 * A leaky bucket: two numbers, whatever is thrown at it. A network that has not failed lately may have the last of the
 * budget, one that has failed often leaves half of it: those who cause a storm use that half up, and keep the other only
 * as long as they find new networks.
 */
export function createFailureBudget(limits: BudgetLimits, clock: Clock): FailureBudget {
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
      // Else a small budget would be owed for hours what a large one had spent.
      spent = Math.min(spent, attempts);
    },
  };
}
