import type { Configuration } from "../config/schema.ts";
import type { Log } from "../core/log.ts";
import { systemClock } from "../lib/clock.ts";
import { responseIds } from "../lib/response-ids.ts";
import { createLog } from "../observe/application-log.ts";
import type { LogSink } from "../observe/log-sink.ts";
import { createMetrics, type Metrics } from "../observe/metrics.ts";
import { createObserver } from "../observe/observer.ts";
import { type Admin, startAdmin } from "../server/admin.ts";
import { notAfter } from "../server/certificate.ts";
import { loadSigningKeys } from "../tokens/signing-keys.ts";
import { seriesOf, tlsOf, workersOf } from "./from-configuration.ts";
import { openLogins } from "./logins.ts";
import { startThreads } from "./threads.ts";
import { startTraffic, type Traffic, type TrafficOptions } from "./traffic.ts";

export interface AppOptions {
  readonly configuration: Configuration;
  /** Sallyport's own version, `<major>.<minor>.<patch>`. */
  readonly version: string;
  readonly sink: LogSink;
}

/** A running Sallyport. */
export interface App {
  readonly address: string;
  readonly port: number;
  /** Undefined when there is no admin listener. */
  readonly adminPort: number | undefined;
  readonly log: Log;
  /** The PEM certificate that is served; undefined without TLS. */
  readonly certificate: string | undefined;
  /** Ends in good order; resolves with whether everything that ran ended by itself. A second call joins the first. */
  stop(): Promise<boolean>;
}

const clock = systemClock;

/**
 * Starts everything that the configuration describes.
 *
 * @throws ConfigError when a file that it names is not usable, or the system's error when an address cannot be had.
 */
export async function startApp({ configuration, version, sink }: AppOptions): Promise<App> {
  const { level } = configuration.log;
  const log = createLog({ sink, level, clock });
  const metrics = createMetrics({ ...seriesOf(configuration), version, clock });
  const observer = createObserver({ metrics, sink, clock, level });
  const tls = await tlsOf(configuration, log);
  if (tls !== undefined) metrics.certificateNotAfter(notAfter(tls.cert));
  const { algorithm, keys: directory } = configuration.tokens;
  const keys = await loadSigningKeys({ algorithm, log, ...(directory && { directory }) });
  const reloaded = (successful: boolean): void => metrics.configReloaded(successful, clock.now());
  const logins = openLogins({ configuration, keys, clock, log, observer, reloaded });
  metrics.gauges.loginQueueLength = logins.waiting;
  let draining = false;
  metrics.gauges.draining = () => draining;

  const options: TrafficOptions = {
    ...{ configuration, version, keys, tls, clock, log, observer },
    logins: logins.service,
    port: configuration.server.listen.port,
    shared: false,
    nextId: responseIds(clock.now()),
  };
  const workers = workersOf(configuration);
  const threads = workers === 1 ? undefined : await startThreads(options, workers, sink);
  const traffic: Traffic = threads ?? (await startTraffic(options));
  metrics.gauges.tokenCacheEntries = traffic.tokenCacheEntries;
  const { address, port } = traffic;
  log.info("listening", { address, port, tls: tls !== undefined, workers });
  const metricsText = threads === undefined ? metrics.text : () => threads.metricsText(metrics);
  const admin = await openAdmin(configuration, metrics, metricsText, () => draining, log).catch(
    async (error: unknown) => {
      await Promise.all([traffic.abandon(), logins.close()]);
      throw error;
    },
  );
  logins.start();

  async function end(): Promise<boolean> {
    draining = true;
    const finished = await traffic.drain();
    await logins.close();
    await admin?.close();
    log.info("stopped", { finished });
    return finished;
  }
  let ending: Promise<boolean> | undefined;
  return {
    ...{ address, port, log },
    adminPort: admin?.port,
    certificate: tls?.cert,
    stop: () => (ending ??= end()),
  };
}

async function openAdmin(
  { admin }: Configuration,
  metrics: Metrics,
  metricsText: () => Promise<string>,
  draining: () => boolean,
  log: Log,
): Promise<Admin | undefined> {
  if (admin === "off") return undefined;
  const opened = await startAdmin({
    ...admin.listen,
    metricsText,
    metricsContentType: metrics.contentType,
    ready: () => ({ ready: !draining(), checks: { draining: draining() ? "yes" : "no" } }),
    log,
  });
  log.info("admin listening", { address: opened.address, port: opened.port });
  return opened;
}
