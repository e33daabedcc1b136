import { parentPort, workerData } from "node:worker_threads";
import { timeOfAllThreads } from "../../src/lib/clock.ts";
import {
  attachSharedTimes,
  RateLimit,
  type SharedTimes,
} from "../../src/policy/rates/rate-limiter.ts";

/** A thread that takes from a limit as fast as it can; nothing is refilled meanwhile. */
export interface SpendingThread {
  readonly shared: SharedTimes;
  readonly burst: number;
  readonly takes: number;
}

export interface Spent {
  readonly allowed: number;
}

const { shared, burst, takes }: SpendingThread = workerData;
const timesOf = attachSharedTimes(shared, timeOfAllThreads());
const settings = { by: "subject", requests: 1, withinMs: 86_400_000, burst } as const;
const limit = new RateLimit("orders", settings, timesOf);
let allowed = 0;
for (let taken = 0; taken < takes; taken += 1) if (limit.take("a").allowed) allowed += 1;
parentPort?.postMessage({ allowed } satisfies Spent);
