import { setTimeout as delay } from "node:timers/promises";
import type { Excuse } from "../accounts/fault-windows.ts";
import type { Mode } from "../backend/modes.ts";
import type { Fault } from "./fault.ts";

/** Creates a fault in which the backend mistreats all requests for some time; the effects on clients are excused. */
function misbehaving(name: string, mode: Mode, excuses: readonly Excuse[]): Fault {
  return async ({ victim, windows, holdMs }) => {
    const mended = windows.open(name, victim.address, excuses);
    await victim.behave(mode);
    await delay(holdMs);
    await victim.behave("right");
    mended();
  };
}

/** It accepts requests and does not answer. */
export const backendSilent = misbehaving("backend silent", "silent", [503, 504]);

/** It begins to answer, and closes the connection before the end. */
export const answersBreakOff = misbehaving("answers break off", "breaking", [502, "broke"]);

/** It drops each connection on which a request arrives. */
export const connectionsDropped = misbehaving("connections dropped", "dropping", [502, "broke"]);
