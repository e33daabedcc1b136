import { performance } from "node:perf_hooks";

/** Where time comes from; injected, so that tests can set it. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch: what `exp` is compared with. */
  now(): number;
  /** Monotonic, milliseconds: what durations are measured with. */
  monotonic(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};
