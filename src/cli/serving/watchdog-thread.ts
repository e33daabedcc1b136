import { workerData } from "node:worker_threads";
import type { WatchdogData } from "./watchdog.ts";

const { endNs }: WatchdogData = workerData;
const leftMs = Number(endNs - process.hrtime.bigint()) / 1e6;
if (leftMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, leftMs);
process.kill(process.pid, "SIGKILL");
