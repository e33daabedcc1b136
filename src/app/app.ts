import type { Snapshot } from "../config/snapshot.ts";
import type { LogSink } from "../observe/log/log-sink.ts";
import { warnUnsupported } from "../observe/tracing/tracing-settings.ts";
import { openAdmin } from "./admin-listener.ts";
import { startupWarningLog, startupWarnings } from "./startup-warnings.ts";
import { createObservation } from "./observation.ts";
import { ReloadStates } from "./reload/reload-states.ts";
import { Reloader, type ReloadOptions } from "./reload/reloader.ts";
import { openService } from "./service.ts";

export interface AppOptions {
  /** The configuration, and the contents of the files that it names. */
  readonly snapshot: Snapshot;
  /** Sallyport's own version, `<major>.<minor>.<patch>`. */
  readonly version: string;
  readonly sink: LogSink;
  /** Takes further snapshots. */
  readonly read: ReloadOptions["read"];
}

/** A running Sallyport. */
export type App = Awaited<ReturnType<typeof startApp>>;

/**
 * Starts everything that the configuration describes.
 *
 * @throws ConfigError if a file that it names cannot be used, or the system's error if an address is not available.
 */
export async function startApp({ snapshot, version, sink, read }: AppOptions) {
  const { configuration } = snapshot;
  const logLinesDropped = (): number => sink.dropped();
  const observation = createObservation(configuration, sink, { version, logLinesDropped });
  const { log, metrics, clock } = observation;
  const reloads = new ReloadStates(clock.now, (problems) =>
    metrics.configReloaded(problems.length === 0, clock.now()),
  );
  const warn = startupWarningLog(log);
  warn(configuration, await startupWarnings(snapshot, clock.now()));
  warnUnsupported({ env: process.env, log });
  const service = await openService(snapshot, version, { ...observation, reloads, warn });
  const { reloaded } = reloads.add();
  const apply = (next: Snapshot): Promise<void> => service.apply(next);
  const reloading = new Reloader({ start: snapshot, read, apply, log, reloaded });
  metrics.gauges.configHash = reloading.hash;
  let started = false;
  /** Drains the traffic only: metrics and health stay available. */
  const drain = (): Promise<boolean> => {
    reloading.close();
    return service.drain();
  };
  const about = { service, reloading, reloads, started: () => started, drain: () => void drain() };
  const admin = await openAdmin(about).catch(async (error: unknown) => {
    await service.abandon();
    throw error;
  });
  started = true;

  async function end(): Promise<boolean> {
    const finished = await drain();
    await Promise.all([service.close(), admin?.close()]);
    log.info("stopped", { finished });
    return finished;
  }
  let ending: Promise<boolean> | undefined;
  const { address, port } = service.parts.traffic;
  return {
    address,
    port,
    log,
    /** The served certificate as PEM; undefined without TLS. */
    certificate: service.certificate,
    /** Undefined if there is no admin listener. */
    adminPort: admin?.port,
    /** Reloads the configuration. Never rejects: errors are logged. @param by who asks for it. */
    reload: (by: string) => reloading.now(by),
    /** The maximum duration of a drain according to the configuration in force, in milliseconds. */
    drainMs: () => service.drainMs,
    /** Shuts down gracefully. Resolves with whether all requests finished in time. A second call joins the first. */
    stop: () => (ending ??= end()),
  };
}
