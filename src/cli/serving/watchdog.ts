import { Worker } from "node:worker_threads";
import { workerFile } from "../../lib/async/worker-file.ts";

/** The thread uses about 9 MB, mostly Node's own. The environment is not passed on, because it may contain secrets. */
const OPTIONS = {
  name: "watchdog",
  resourceLimits: { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 16 },
  execArgv: [],
  env: {},
};

export interface WatchdogData {
  /** The deadline on the clock of `process.hrtime`, which all threads share, in nanoseconds. */
  readonly endNs: bigint;
}

/**
 * Kills the process with SIGKILL if it still runs after `limitMs`, even if the event loop of the main thread is blocked
 * and its timers cannot fire. It runs only while the process stops.
 */
export function startWatchdog(limitMs: number): void {
  const workerData: WatchdogData = {
    endNs: process.hrtime.bigint() + BigInt(Math.round(limitMs * 1e6)),
  };
  const worker = new Worker(workerFile("watchdog-thread", import.meta.url), {
    ...OPTIONS,
    workerData,
  });
  // Without the watchdog, the timers of the main thread still apply.
  worker.on("error", () => undefined);
  worker.unref();
}
