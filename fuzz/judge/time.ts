import type { Lap } from "../subject/loop-watch.ts";
import { type Fault, fault } from "./fault.ts";

/** How long an event loop may not turn until it counts as hung, in milliseconds: a busy machine is slow, too. */
export const HUNG_MS = 4_000;
/** The maximum length of a turn, in milliseconds of CPU time. */
const LONGEST_TURN_MS = 50;

/**
 * Judges a lap of the event loop.
 *
 * @param lap undefined if it hung.
 * @param costMs the maximum cost, in milliseconds of CPU time.
 */
export function judgeLap(lap: Lap | undefined, costMs = Infinity): Fault[] {
  if (lap === undefined) return [fault("stall", `not for ${HUNG_MS} ms`)];
  const { spentMs, longestMs } = lap;
  if (longestMs > LONGEST_TURN_MS) return [fault("stall", `not for ${rounded(longestMs)} ms`)];
  return spentMs > costMs ? [fault("cost", `${rounded(spentMs)} ms`)] : [];
}

/** Rounds a time, so that the same finding has the same text. */
function rounded(ms: number): string {
  return ms.toPrecision(2);
}
