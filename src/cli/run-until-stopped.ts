import type { App } from "../app/start.ts";
import type { LogSink } from "../observe/log-sink.ts";
import { EXIT } from "./command.ts";

const LAST_LINES_MS = 1_000;

/**
 * Waits for a signal, then drains; a second signal ends the process at once. What nobody caught is logged and does not
 * end the process.
 *
 * @returns the exit code of an orderly end.
 */
export async function runUntilStopped(
  app: App,
  sink: LogSink,
  signals: readonly NodeJS.Signals[] = ["SIGTERM", "SIGINT"],
): Promise<number> {
  const survive = (error: unknown): void => app.log.error("an error was not caught", { error });
  process.on("uncaughtException", survive).on("unhandledRejection", survive);
  process.once("exit", () => sink.flush());
  await new Promise<void>((resolve) => {
    let asked = false;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (asked) {
        app.log.warn("a second signal ends it now", { signal });
        sink.flush();
        process.exit(EXIT.failed);
      }
      asked = true;
      app.log.info("asked to stop", { signal });
      resolve();
    };
    for (const signal of signals) process.on(signal, onSignal);
  });
  await app.stop();
  await sink.drain(LAST_LINES_MS);
  return EXIT.done;
}
