import type { Configuration } from "../config/schema.ts";
import type { AdminPage } from "../core/admin-page.ts";
import type { Log } from "../core/log.ts";
import { systemClock } from "../lib/clock.ts";
import { openings } from "../lib/dumps.ts";
import { networks } from "../lib/networks.ts";
import { responseIds } from "../lib/response-ids.ts";
import { createLog } from "../observe/application-log.ts";
import type { LogSink } from "../observe/log-sink.ts";
import { createMetrics } from "../observe/metrics.ts";
import { createObserver } from "../observe/observer.ts";
import { type Admin, startAdmin } from "../server/admin.ts";
import { drainPages, type DrainState } from "../server/drain-pages.ts";
import { explainPage } from "../server/explain-page.ts";
import { keySetPage } from "../server/key-set-page.ts";
import { metricsPage } from "../server/metrics-page.ts";
import { reloadPage } from "../server/reload-page.ts";
import { probePages } from "../server/probe-pages.ts";
import { notAfter } from "../server/certificate.ts";
import { publishedKeys } from "../tokens/published-keys.ts";
import { openOwnKeys } from "../tokens/watched-keys.ts";
import { concernsOf } from "./concerns.ts";
import { seriesOf, tlsOf, workersOf } from "./from-configuration.ts";
import { openLogins } from "./logins.ts";
import { type ReloadOptions, startReloading } from "./reload.ts";
import { createProbing } from "./readiness.ts";
import { startThreads } from "./threads.ts";
import { startTraffic, type Traffic, type TrafficOptions } from "./traffic.ts";

export interface AppOptions {
  readonly configuration: Configuration;
  /** Sallyport's own version, `<major>.<minor>.<patch>`. */
  readonly version: string;
  readonly sink: LogSink;
  /** Where the configuration came from; left out, it never changes. */
  readonly source?: Pick<ReloadOptions, "file" | "read">;
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
  /** Reads the configuration again, where it has a source. Never rejects: what is wrong is in the log. */
  reload(): Promise<unknown>;
  /** Ends in good order; resolves with whether everything that ran ended by itself. A second call joins the first. */
  stop(): Promise<boolean>;
}

const clock = systemClock;

/**
 * Starts everything that the configuration describes.
 *
 * @throws ConfigError when a file that it names is not usable, or the system's error when an address cannot be had.
 */
export async function startApp(beginnings: AppOptions): Promise<App> {
  const { configuration, version, sink, source } = beginnings;
  const { level } = configuration.log;
  const log = createLog({ sink, level, clock });
  const metrics = createMetrics({ ...seriesOf(configuration), version, clock });
  const observer = createObserver({ metrics, sink, clock, level });
  tellConcerns(configuration, log);
  const tls = await tlsOf(configuration, log);
  if (tls !== undefined) metrics.certificateNotAfter(notAfter(tls.cert));
  const { algorithm, keys: directory } = configuration.tokens;
  const broken = new Set<string>();
  /** What one file says is told only while no other one is broken. */
  const reloadedFrom =
    (source: string) =>
    (successful: boolean): void => {
      if (successful) broken.delete(source);
      else broken.add(source);
      metrics.configReloaded(broken.size === 0, clock.now());
    };
  const ofKeys = { algorithm, directory, reloaded: reloadedFrom("keys") };
  const keys = await openOwnKeys({ ...ofKeys, clock, log });
  const reloaded = reloadedFrom("users");
  const logins = openLogins({ configuration, keys, clock, log, observer, reloaded });
  metrics.gauges.loginQueueLength = logins.waiting;
  metrics.gauges.signingKey = () => keys.signer;
  let started = false;
  let state: DrainState = "serving";
  const draining = (): boolean => state !== "serving";
  metrics.gauges.draining = draining;
  const probing = createProbing(configuration, draining, clock);

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
  metrics.gauges.upstreamLoad = traffic.upstreamLoad;
  const { address, port } = traffic;
  log.info("listening", { address, port, tls: tls !== undefined, workers });
  const metricsText = threads === undefined ? metrics.text : () => threads.metricsText(metrics);
  let current = configuration;
  async function apply(next: Configuration): Promise<void> {
    // One that signs itself was made for this process, and clients may have learnt it.
    const nextTls = next.server.tls.mode === "selfSigned" ? tls : await tlsOf(next, log);
    await keys.change({ algorithm: next.tokens.algorithm, directory: next.tokens.keys });
    metrics.add(seriesOf(next));
    await traffic.change({ configuration: next, tls: nextTls });
    probing.change(next);
    await logins.change(next);
    if (nextTls !== undefined) metrics.certificateNotAfter(notAfter(nextTls.cert));
    tellConcerns(next, log);
    current = next;
  }
  const reloading =
    source &&
    startReloading({
      ...{ ...source, configuration, apply, log },
      reloaded: reloadedFrom("configuration"),
    });
  const pages = [
    ...(reloading === undefined ? [] : [reloadPage(reloading.now)]),
    metricsPage(metricsText, metrics.contentType, metrics.openText),
    keySetPage(() => publishedKeys(keys.verification)),
    explainPage(async (asked) => {
      const { explain } = await import("./explanation/explain.ts");
      return explain({ configuration: current, keys, clock }, asked);
    }),
    ...probePages({ started: () => started, checks: probing.checks }),
    ...drainPages({ state: () => state, begin: () => void drain() }),
  ];
  const allPages = (): AdminPage[] => [...pages, ...probing.passages()];
  const admin = await openAdmin(configuration, allPages, log).catch(async (error: unknown) => {
    keys.close();
    await Promise.all([traffic.abandon(), logins.close()]);
    throw error;
  });
  logins.start();

  started = true;

  let drained: Promise<boolean> | undefined;
  /** Ends the traffic and nothing else: metrics and health can still be asked. A second call joins the first. */
  function drain(): Promise<boolean> {
    if (drained !== undefined) return drained;
    state = "draining";
    reloading?.close();
    drained = traffic.drain().finally(() => (state = "drained"));
    return drained;
  }
  async function end(): Promise<boolean> {
    const finished = await drain();
    await logins.close();
    keys.close();
    await admin?.close();
    log.info("stopped", { finished });
    return finished;
  }
  let ending: Promise<boolean> | undefined;
  return {
    ...{ address, port, log },
    adminPort: admin?.port,
    certificate: tls?.cert,
    reload: async () => reloading?.now(),
    stop: () => (ending ??= end()),
  };
}

/** What does not keep it from starting, and should be seen to. */
function tellConcerns(configuration: Configuration, log: Log): void {
  for (const { file, urgent, message } of concernsOf(configuration, clock.now())) {
    log[urgent ? "error" : "warn"](`a file needs attention: ${message}`, { file });
  }
  const watched = configuration.routes.filter(({ mode }) => mode === "monitor");
  if (watched.length > 0) {
    const routes = watched.map(({ name }) => name);
    log.warn("NOBODY IS REFUSED on routes with mode: monitor", { routes });
  }
  const open = openings();
  if (open.length > 0) log.warn("what this process holds can be read from outside", { by: open });
}

async function openAdmin(
  { admin }: Configuration,
  pages: () => readonly AdminPage[],
  log: Log,
): Promise<Admin | undefined> {
  if (admin === "off") return undefined;
  const opened = await startAdmin({
    ...admin.listen,
    allow: networks(admin.allow),
    get pages() {
      return pages();
    },
    log,
  });
  log.info("admin listening", { address: opened.address, port: opened.port });
  return opened;
}
