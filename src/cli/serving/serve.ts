import { setTimeout as after } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import { inspect } from "../../app/inspection.ts";
import type { InForce, Snapshot } from "../../config/snapshot.ts";
import { createLogSink, type LogSink } from "../../observe/log/log-sink.ts";
import {
  CONFIGURATION_FLAGS,
  CONFIGURATION_HELP,
  configurationSources,
  parseFlags,
} from "../arguments.ts";
import { type Command, EXIT } from "../command.ts";
import { ownVersion } from "../version.ts";
import { type App, type AppOptions, startApp } from "../../app/app.ts";
import { surviveErrors } from "../../app/survive-errors.ts";
import { withTimeout } from "../../lib/async/with-timeout.ts";
import { startWatchdog } from "./watchdog.ts";
import { ConfigError } from "../../core/config-problem.ts";
import { hasNodeParser } from "../../upstream/http1/response-parser.ts";

const BIND_ERRORS = new Map<unknown, string>([
  ["EADDRINUSE", "is taken by another program"],
  ["EADDRNOTAVAIL", "is not an address of this machine"],
  ["EACCES", "cannot be listened on by this user"],
]);

/**
 * Starts the proxy.
 *
 * @param advice what the user can do if an address is not available.
 * @throws ConfigError if Node's parser, which reads the backends' responses, is not the expected one; Error with a one-line
 * message if an address is not available; else the error of `startApp`.
 */
export async function start(options: AppOptions, advice: string): Promise<App> {
  if (!hasNodeParser()) {
    const message = `Node ${process.versions.node} has a different HTTP parser: it needs Node 24 or 26`;
    throw new ConfigError([{ file: process.execPath, message }]);
  }
  try {
    return await startApp(options);
  } catch (error) {
    const address = describeBindError(error);
    throw address === undefined ? error : new Error(`${address}; ${advice}`, { cause: error });
  }
}

function describeBindError(error: unknown): string | undefined {
  if (!(error instanceof Error && "code" in error && "address" in error && "port" in error)) {
    return undefined;
  }
  const trouble = BIND_ERRORS.get(error.code);
  if (trouble === undefined) return undefined;
  const host = String(error.address);
  return `${host.includes(":") ? `[${host}]` : host}:${String(error.port)} ${trouble}`;
}

/** How long a start may take after the signal, in milliseconds. */
const START_MS = 5_000;

/**
 * The request to stop, remembered from before the configuration is read. Without a listener, a signal would end a process
 * whose first threads already serve clients, or, in a container whose process 1 this is, get lost. That still happens while
 * the modules are loaded, before the command runs.
 */
export class StopSignal {
  readonly #received: Promise<NodeJS.Signals>;
  /** Called for each further signal. */
  again: (signal: NodeJS.Signals) => void = () => process.exit(EXIT.failed);
  #starting: NodeJS.Timeout | undefined;

  /** @param signals by default also SIGQUIT, with which nginx is asked to finish its requests. */
  constructor(signals: readonly NodeJS.Signals[] = ["SIGTERM", "SIGINT", "SIGQUIT"]) {
    const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
    this.#received = promise;
    let isFirst = true;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (!isFirst) return this.again(signal);
      isFirst = false;
      this.#starting = setTimeout(() => process.exit(EXIT.failed), START_MS).unref();
      resolve(signal);
    };
    for (const signal of signals) process.on(signal, onSignal);
  }

  /** Waits for the first signal. Called once everything has started. */
  async wait(): Promise<NodeJS.Signals> {
    const signal = await this.#received;
    clearTimeout(this.#starting);
    return signal;
  }
}

/**
 * Node's names of work in the thread pool that lasts until a disk or a name server responds. Node 26 does not report
 * reads of a file that is already open.
 */
const POOL_WORK = /^(?:FSReq|GetAddrInfo|GetNameInfo)/;
const CHECK_EVERY_MS = 10;

/**
 * Detects whether `process.exit` would hang. It waits for all threads and for pending work in libuv's pool: with a
 * thread in a system call, or a file on storage that does not respond, it waits forever (tried on Node 26).
 */
export class LastExit {
  readonly #threads = new Set<Worker>();

  constructor() {
    process.on("worker", (worker: Worker) => {
      this.#threads.add(worker);
      worker.once("exit", () => this.#threads.delete(worker));
    });
  }

  /**
   * Terminates all threads. Resolves once nothing blocks an exit; after `limitMs`, kills the process with SIGKILL.
   */
  async clear(limitMs: number): Promise<void> {
    const work = this.#end();
    if (!(await withTimeout(work, limitMs, false))) process.kill(process.pid, "SIGKILL");
  }

  async #end(): Promise<boolean> {
    await Promise.all([...this.#threads].map((thread) => thread.terminate()));
    while (process.getActiveResourcesInfo().some((name) => POOL_WORK.test(name))) {
      await after(CHECK_EVERY_MS);
    }
    return true;
  }
}

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

export const serve: Command = {
  help: `Usage: sallyport serve [options]

Runs the proxy. It reloads the configuration and the files that it names when they change, on SIGHUP and
on POST /-/reload of the admin listener; after an error, the old configuration stays in force. SIGTERM,
SIGINT or SIGQUIT drains: readiness fails, new requests are served for server.drain.delay, and running
requests may finish until server.drain.timeout. A second signal ends the process immediately. SIGUSR1 and
SIGUSR2 do nothing.

${CONFIGURATION_HELP}
  -h, --help            this text`,
  async run(args, terminal) {
    const stop = new StopSignal();
    const exit = new LastExit();
    const flags = parseFlags(args, CONFIGURATION_FLAGS);
    const sources = configurationSources(flags, terminal);
    const snapshot = await inspect(sources);
    const sink = createLogSink({ format: snapshot.configuration.log.format });
    const read = (inForce: InForce): Promise<Snapshot> => inspect(sources, inForce);
    const app = await start(
      { snapshot, version: ownVersion(), sink, read },
      "choose another with server.listen or admin.listen",
    );
    process.on("SIGHUP", () => void app.reload("SIGHUP"));
    return runUntilStopped(app, sink, exit, stop);
  },
};
