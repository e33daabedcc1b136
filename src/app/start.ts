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
import { tellUnfollowed } from "../observe/tracing.ts";
import { type Admin, startAdmin } from "../server/admin.ts";
import { drainPages, type DrainState } from "../server/drain-pages.ts";
import { explainPage } from "../server/explain-page.ts";
import { keySetPage } from "../server/key-set-page.ts";
import { metricsPage } from "../server/metrics-page.ts";
import { reloadPage } from "../server/reload-page.ts";
import { probePages } from "../server/probe-pages.ts";
import { publishedKeys } from "../tokens/published-keys.ts";
import { openOwnKeys } from "../tokens/watched-keys.ts";
import { type Concern, concernsOf, fewOpenFiles } from "./concerns.ts";
import { askedOf, seriesOf, type ServerTls, tlsOf, workersOf } from "./from-configuration.ts";
import { openLogins } from "./logins.ts";
import { type ReadConfiguration, type ReloadOptions, startReloading } from "./reload.ts";
import { ReloadStates } from "./reload-states.ts";
import { ServedCertificate } from "./served-certificate.ts";
import { prepareAll } from "./prepare-all.ts";
import { createProbing } from "./readiness.ts";
import { startThreads } from "./threads.ts";
import { startTraffic, type Traffic, type TrafficOptions } from "./traffic.ts";

export interface AppOptions {
  readonly configuration: Configuration;
  /** Sallyport's own version, `<major>.<minor>.<patch>`. */
  readonly version: string;
  readonly sink: LogSink;
  /** Where the configuration came from; left out, it never changes. */
  readonly source?: Pick<ReloadOptions, "read"> & Pick<ReadConfiguration, "files">;
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
  const logLinesDropped = (): number => sink.dropped();
  const metrics = createMetrics({ ...seriesOf(configuration), version, clock, logLinesDropped });
  const observer = createObserver({ metrics, sink, clock, level });
  tellConcerns(configuration, concernsOf(configuration, clock.now()), log);
  tellUnfollowed({ env: process.env, log });
  const tls = await tlsOf(configuration, log);
  const certificate = new ServedCertificate(tls?.cert, { metrics, log });
  const { algorithm, keys: directory } = configuration.tokens;
  const reloads = new ReloadStates((successful) => {
    metrics.configReloaded(successful, clock.now());
  });
  const { reloaded } = reloads.add();
  const keys = await openOwnKeys({ algorithm, directory, reloaded, clock, log });
  const logins = await openLogins({ configuration, keys, clock, log, observer, reloads });
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
    reloads,
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
  let served = tls;
  async function apply(next: Configuration, written: Configuration): Promise<void> {
    const nextTls = await tlsFor(next, written, served, log);
    const concerns = concernsOf(written, clock.now());
    const change = await prepareAll([
      () => keys.prepare({ algorithm: next.tokens.algorithm, directory: next.tokens.keys }),
      () => logins.prepare(next),
      () => probing.prepare(next),
      () => traffic.prepare({ configuration: next, tls: nextTls }),
    ]);
    // From here on nothing fails.
    metrics.add(seriesOf(next));
    current = next;
    served = nextTls;
    await change.commit();
    certificate.serve(nextTls?.cert);
    tellConcerns(next, concerns, log);
  }
  const reloading =
    source &&
    startReloading({
      ...{ start: { configuration, files: source.files }, read: source.read, apply, log },
      reloaded: reloads.add().reloaded,
    });
  const pages = [
    ...(reloading === undefined ? [] : [reloadPage(reloading.now)]),
    metricsPage(metricsText, metrics.contentType, metrics.openText),
    keySetPage(() => publishedKeys(keys.verification)),
    explainPage(async (asked) => {
      const { explain } = await import("./explanation/explain.ts");
      return explain({ configuration: current, keys, clock }, traffic.asked(), asked);
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

/** What is served from now on. @throws ConfigError when it cannot be used. */
async function tlsFor(
  next: Configuration,
  written: Configuration,
  served: ServerTls,
  log: Log,
): Promise<ServerTls> {
  const { tls } = next.server;
  try {
    if (tls.mode !== "selfSigned") return await tlsOf(next, log);
    // One that signs itself was made for this process, and clients may have learnt it.
    return served && { ...served, clientCertificates: askedOf(tls) };
  } catch (error) {
    if (written.server.tls.mode === tls.mode) throw error;
    return served; // until the restart; its files may be gone with the keys that named them
  }
}

/** What does not keep it from starting, and should be seen to. */
function tellConcerns(configuration: Configuration, concerns: readonly Concern[], log: Log): void {
  for (const { file, urgent, message } of concerns) {
    log[urgent ? "error" : "warn"](`a file needs attention: ${message}`, { file });
  }
  const files = fewOpenFiles(configuration);
  if (files !== undefined)
    log.warn("too few files may be open for server.limits.connections", files);
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
