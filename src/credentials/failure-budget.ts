import type { Clock } from "../lib/clock.ts";

/** So many failures in a burst, and on average no more than so many in each `withinMs`. */
export interface BudgetLimits {
  readonly attempts: number;
  readonly withinMs: number;
}

/** One budget of failures that refills steadily. */
export interface FailureBudget {
  /** Milliseconds until one more failure can be afforded; 0 when one can be now. */
  waitMs(): number;
  spend(): void;
}

/** A leaky bucket: two numbers, whatever is thrown at it. It never owes more than the whole budget, so waits stay short. */
export function createFailureBudget(
  { attempts, withinMs }: BudgetLimits,
  clock: Clock,
): FailureBudget {
  const msEach = withinMs / attempts;
  let spent = 0;
  let at = clock.monotonic();

  function refill(): void {
    const now = clock.monotonic();
    spent = Math.max(0, spent - (now - at) / msEach);
    at = now;
  }

  return {
    waitMs() {
      refill();
      return Math.max(0, (spent + 1 - attempts) * msEach);
    },
    spend() {
      refill();
      spent = Math.min(attempts, spent + 1);
    },
  };
}
