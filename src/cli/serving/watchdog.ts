import { startWorker } from "../../lib/async/worker-file.ts";

/** The thread uses about 9 MB, mostly Node's own. */
const LIMITS = { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 16 };

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
  const worker = startWorker("watchdog-thread", import.meta.url, LIMITS, workerData);
  // Without the watchdog, the timers of the main thread still apply.
  worker.on("error", () => undefined);
  worker.unref();
}
