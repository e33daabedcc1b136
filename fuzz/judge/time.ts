import type { Lap } from "../subject/loop-watch.ts";
import { type Fault, fault } from "./fault.ts";

/** When an event loop that does not turn counts as hung, in milliseconds: a machine that is busy may take long, too. */
export const HUNG_MS = 4_000;
/** The longest that it may not turn, in milliseconds of processor time. */
const LONGEST_TURN_MS = 50;

/**
 * What is wrong with a lap of the event loop.
 *
 * @param lap undefined when it hung.
 * @param costMs the most that it may cost, in milliseconds of processor time.
 */
export function judgeLap(lap: Lap | undefined, costMs = Infinity): Fault[] {
  if (lap === undefined) return [fault("stall", `not for ${HUNG_MS} ms`)];
  const { spentMs, longestMs } = lap;
  if (longestMs > LONGEST_TURN_MS) return [fault("stall", `not for ${told(longestMs)} ms`)];
  return spentMs > costMs ? [fault("cost", `${told(spentMs)} ms`)] : [];
}

/** Rounded, so that the same finding reads alike. */
function told(ms: number): string {
  return ms.toPrecision(2);
}
