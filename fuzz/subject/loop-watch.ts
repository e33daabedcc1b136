/**
 * Runs inside the subject (`node --import`) and tells the fuzzer about its event loop. Times are those of the thread on a
 * processor: what else runs on the machine does not change them.
 */
import { isMainThread } from "node:worker_threads";

/** What the event loop did in a while, in milliseconds of processor time. */
export interface Lap {
  readonly spentMs: number;
  /** The longest that it did not turn. */
  readonly longestMs: number;
}

/** How often it is looked at the clock, in milliseconds. */
const LOOK_EVERY_MS = 5;

if (isMainThread) watchLoop((lap) => void process.send?.(lap));

/** Answers every message with the lap since the last one. Keeps no process alive. */
function watchLoop(tell: (lap: Lap) => void): void {
  let begun = spentMs();
  let last = begun;
  let longestMs = 0;
  const turned = (): void => {
    const now = spentMs();
    longestMs = Math.max(longestMs, now - last);
    last = now;
  };
  setInterval(turned, LOOK_EVERY_MS).unref();
  process.on("message", () => {
    turned();
    tell({ spentMs: last - begun, longestMs });
    begun = last;
    longestMs = 0;
  });
  // A fuzzer that was killed leaves nothing behind.
  process.once("disconnect", () => process.exit());
  process.channel?.unref();
}

function spentMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
