import type { App } from "../../app/app.ts";
import { surviveErrors } from "../../app/survive-errors.ts";
import { withTimeout } from "../../lib/async/with-timeout.ts";
import type { LogSink } from "../../observe/log/log-sink.ts";
import { EXIT } from "../command.ts";
import type { LastExit } from "./last-exit.ts";
import type { StopSignal } from "./stop-signal.ts";
import { startWatchdog } from "./watchdog.ts";

/**
 * Deadlines in milliseconds after the time limits of the drain: for closing everything else, for writing the last log
 * lines, and for the end of the process in any case.
 */
const CLOSED_MS = 1_300;
const WRITTEN_MS = 1_600;
const GONE_MS = 1_900;
/** Maximum wait for a stalled reader of the log, in milliseconds. */
const LAST_LINES_MS = 1_000;
/** Wait for the last threads, in milliseconds: at least, and if the drain has left time, at most. */
const LAST_THREADS_MS = { least: 200, most: 1_500 };

/**
 * Waits for a signal, then drains; a second signal ends the process at once. Uncaught errors are logged and do not end
 * the process. Whatever hangs, the process ends within two seconds after the time limits of the drain.
 *
 * @returns the exit code of an orderly shutdown.
 */
export async function runUntilStopped(
  app: App,
  sink: LogSink,
  exit: LastExit,
  stop: StopSignal,
): Promise<number> {
  surviveErrors(app.log);
  process.once("exit", () => sink.flush());
  stop.again = (signal) => {
    app.log.warn("second signal: exiting now", { signal });
    sink.flush();
    void exit.clear(LAST_THREADS_MS.least).then(() => process.exit(EXIT.failed));
  };
  app.log.info("asked to stop", { signal: await stop.wait(), again: "stops at once" });
  const drainMs = app.drainMs();
  const stoppedAt = performance.now();
  startWatchdog(drainMs + GONE_MS);
  const stopped = await withTimeout(
    app.stop().then(() => true),
    drainMs + CLOSED_MS,
    false,
  );
  if (!stopped) app.log.warn("something did not close in time");
  const leftUntil = (deadlineMs: number): number =>
    drainMs + deadlineMs - (performance.now() - stoppedAt);
  await sink.drain(Math.max(0, Math.min(LAST_LINES_MS, leftUntil(WRITTEN_MS))));
  const { least, most } = LAST_THREADS_MS;
  await exit.clear(Math.max(least, Math.min(most, leftUntil(GONE_MS))));
  return EXIT.done;
}
