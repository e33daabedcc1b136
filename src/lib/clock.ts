import { performance } from "node:perf_hooks";

/** A source of time, injected so that tests can set it. */
export interface Clock {
  /** Wall clock, in milliseconds since the epoch: for timestamps such as `exp`. */
  now(): number;
  /** Monotonic clock, in milliseconds: for durations. */
  monotonic(): number;
}

/** The longest delay of `setTimeout`, in milliseconds, about 24.8 days; beyond it, the timer fires at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Returns a monotonic clock, in milliseconds, that gives the same time in all threads. `monotonic` does not: it
 * starts at 0 with its thread.
 */
export function timeOfAllThreads(): () => number {
  const began = Number(process.hrtime.bigint()) / 1e6 - performance.now();
  return () => began + performance.now();
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};
