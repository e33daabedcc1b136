import { setTimeout as delay } from "node:timers/promises";
import type { Excuse } from "../accounts/fault-windows.ts";
import type { Mode } from "../backend/modes.ts";
import type { Fault } from "./fault.ts";

/** For some time the backend treats every request in a bad way; what clients may see of it is excused. */
function misbehaving(name: string, mode: Mode, excuses: readonly Excuse[]): Fault {
  return async ({ victim, windows, holdMs }) => {
    const mended = windows.open(name, victim.address, excuses);
    await victim.behave(mode);
    await delay(holdMs);
    await victim.behave("right");
    mended();
  };
}

/** It takes requests and says nothing. */
export const backendSilent = misbehaving("backend silent", "silent", [503, 504]);

/** It begins to answer and ends the connection in the middle. */
export const answersBreakOff = misbehaving("answers break off", "breaking", [502, "broke"]);

/** It drops each connection on which a request comes. */
export const connectionsDropped = misbehaving("connections dropped", "dropping", [502, "broke"]);
