/**
 * Runs inside the subject (`node --import`) and reports its event loop to the fuzzer. Times are CPU times of the thread, so
 * other load on the machine does not change them.
 */
import { isMainThread } from "node:worker_threads";

/** The activity of the event loop in some period, in milliseconds of CPU time. */
export interface Lap {
  readonly spentMs: number;
  /** The longest turn. */
  readonly longestMs: number;
}

/** How often the clock is read, in milliseconds. */
const LOOK_EVERY_MS = 5;

if (isMainThread) watchLoop((lap) => void process.send?.(lap));

/** Answers every message with the lap since the last one. Does not keep the process alive. */
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
  // A killed fuzzer leaves no process behind.
  process.once("disconnect", () => process.exit());
  process.channel?.unref();
}

function spentMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
