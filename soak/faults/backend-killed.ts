import { setTimeout as delay } from "node:timers/promises";
import type { FaultContext } from "./fault.ts";

/** Kills the backend's process, waits for some time, and restarts it on the same port. */
export async function backendKilled({ victim, windows, holdMs }: FaultContext): Promise<void> {
  const mended = windows.open("backend killed", victim.address, [502, "broke"]);
  await victim.kill();
  await delay(holdMs);
  await victim.restart();
  mended();
}
