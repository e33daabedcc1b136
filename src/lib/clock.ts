import { performance } from "node:perf_hooks";

/** A source of time, injected so that tests can set it. */
export interface Clock {
  /** Wall clock, in milliseconds since the epoch: for timestamps such as `exp`. */
  now(): number;
  /** Monotonic clock, in milliseconds: for durations. */
  monotonic(): number;
}

/** Milliseconds of the monotonic clock, the same in all threads: `monotonic` begins with its thread. */
export function timeOfAllThreads(): () => number {
  const began = Number(process.hrtime.bigint()) / 1e6 - performance.now();
  return () => began + performance.now();
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};
