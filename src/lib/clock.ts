import { performance } from "node:perf_hooks";

/** A source of time, injected so that tests can set it. */
export interface Clock {
  /** Wall clock, in milliseconds since the epoch: for timestamps such as `exp`. */
  now(): number;
  /** Monotonic clock, in milliseconds: for durations. */
  monotonic(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};
