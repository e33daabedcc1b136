import { setTimeout as delay } from "node:timers/promises";
import { usageOf } from "./accounting.ts";

/** Returns the resident memory in bytes once it changes by at most 0.5 % in half a second, at the latest after 15 s. */
export async function settledMemory(pid: number): Promise<number> {
  const deadline = performance.now() + 15_000;
  let before = 0;
  let now = usageOf(pid).residentBytes;
  while (Math.abs(now - before) > now * 0.005 && performance.now() < deadline) {
    await delay(500);
    before = now;
    now = usageOf(pid).residentBytes;
  }
  return now;
}
