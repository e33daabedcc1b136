import { setTimeout as delay } from "node:timers/promises";
import { usageOf } from "./accounting.ts";

/** The resident memory in bytes once it has stopped moving by more than 0.5 % in half a second; after 15 s as it is then. */
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
