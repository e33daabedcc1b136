import { readFileSync } from "node:fs";
import type { Configuration } from "./config/schema.ts";
import type { Gate } from "./core/gate.ts";
import type { Log } from "./core/log.ts";
import type { Observer } from "./core/observer.ts";
import type { Route } from "./core/route.ts";
import type { VersionSource } from "./core/version-source.ts";
import { createCredentialCheck } from "./credentials/credential-check.ts";
import { openFileUserStore } from "./credentials/file-user-store.ts";
import { createHashingPool } from "./credentials/hashing-pool.ts";
import { createLoginThrottle } from "./credentials/login-throttle.ts";
import { systemClock } from "./lib/clock.ts";
import { networks } from "./lib/networks.ts";
import { responseIds } from "./lib/response-ids.ts";
import { createLog } from "./observe/application-log.ts";
import type { LogSink } from "./observe/log-sink.ts";
import { createMetrics, type Metrics } from "./observe/metrics.ts";
import { createObserver } from "./observe/observer.ts";
import { authorize } from "./policy/authorize.ts";
import { createRouteTable } from "./policy/route-table.ts";
import { type Admin, startAdmin } from "./server/admin.ts";
import { AUTHENTICATE_PATH, authenticateEndpoint } from "./server/authenticate.ts";
import { notAfter, readCertificate } from "./server/certificate.ts";
import { developmentCertificate } from "./server/development-certificate.ts";
import { drain } from "./server/drain.ts";
import { createIntake } from "./server/intake.ts";
import { type ListenOptions, listen } from "./server/listen.ts";
import { createLoginService } from "./server/login-service.ts";
import { Pipeline } from "./server/pipeline.ts";
import { VERSION_PATHS, versionEndpoint } from "./server/version.ts";
import { fileVersion, fixedVersion } from "./server/version-sources.ts";
import { createTokenIssuer } from "./tokens/issuer.ts";
import { loadSigningKeys, type SigningKeys } from "./tokens/signing-keys.ts";
import { createTokenVerifier } from "./tokens/verifier.ts";
import { createForwarder } from "./upstream/forward.ts";
import { IDENTITY_PRESETS } from "./upstream/identity-headers.ts";
import type { UpstreamOptions } from "./upstream/upstreams.ts";
import { backendVersion } from "./upstream/version-from-backend.ts";

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
  const { server } = configuration;
  const log = createLog({ sink, level: configuration.log.level, clock });
  const metrics = createMetrics({
    routes: configuration.routes.map((route) => route.name),
    upstreams: Object.keys(configuration.upstreams),
    version,
    clock,
  });
  const observer = createObserver({ metrics, sink, clock, level: configuration.log.level });
  const tls = await tlsOf(configuration, log);
  if (tls !== undefined) metrics.certificateNotAfter(notAfter(tls.cert));
  const parts = await buildGate({ configuration, version, log, observer, metrics });

  let draining = false;
  metrics.gauges.draining = () => draining;
  const nextId = responseIds(clock.now());
  const realm = configuration.tokens.issuer.replaceAll(/["\\]/g, "");
  const pipeline = new Pipeline({
    gate: () => parts.gate,
    intake: createIntake(networks(server.trustedProxies)),
    nextId,
    realm,
    observer,
    log,
    clock,
    draining: () => draining,
  });
  const { limits, timeouts } = server;
  const listener = await listen({
    ...server.listen,
    shared: false,
    tls,
    limits,
    timeouts,
    pipeline,
    nextId,
    realm,
    observer,
    log,
  });
  log.info("listening", { address: listener.address, port: listener.port, tls: tls !== undefined });
  const admin = await openAdmin(configuration, metrics, () => draining, log);
  parts.started();

  let stopping: Promise<boolean> | undefined;
  async function end(): Promise<boolean> {
    draining = true;
    const { delay, timeout } = server.drain;
    const { closeWebSockets } = parts;
    const finished = await drain({ listener, delay, timeout, closeWebSockets, log });
    await parts.close();
    await admin?.close();
    log.info("stopped", { finished });
    return finished;
  }
  return {
    address: listener.address,
    port: listener.port,
    adminPort: admin?.port,
    log,
    certificate: tls?.cert,
    stop: () => (stopping ??= end()),
  };
}

async function openAdmin(
  { admin }: Configuration,
  metrics: Metrics,
  draining: () => boolean,
  log: Log,
): Promise<Admin | undefined> {
  if (admin === "off") return undefined;
  const opened = await startAdmin({
    ...admin.listen,
    metricsText: () => metrics.text(),
    metricsContentType: metrics.contentType,
    ready: () => ({
      ready: !draining(),
      checks: { draining: draining() ? "yes" : "no" },
    }),
    log,
  });
  log.info("admin listening", { address: opened.address, port: opened.port });
  return opened;
}

async function tlsOf({ server }: Configuration, log: Log): Promise<ListenOptions["tls"]> {
  switch (server.tls.mode) {
    case "off":
      return undefined;
    case "selfSigned":
      log.warn("the certificate signs itself: for development only");
      return {
        ...(await developmentCertificate(["localhost", "127.0.0.1", "::1"])),
        minVersion: "TLSv1.2",
      };
    case "files": {
      const { certFile, keyFile, minVersion } = server.tls;
      return { ...readCertificate(certFile, keyFile), minVersion };
    }
  }
}

interface GateParts {
  readonly gate: Gate;
  /** To be called when requests can arrive: what the first of them would wait for is made ready. */
  started(): void;
  closeWebSockets(): void;
  close(): Promise<void>;
}

interface GateOptions {
  readonly configuration: Configuration;
  readonly version: string;
  readonly log: Log;
  readonly observer: Observer;
  readonly metrics: Metrics;
}

async function buildGate(options: GateOptions): Promise<GateParts> {
  const { configuration, log, observer, metrics } = options;
  const keys = await loadSigningKeys({
    algorithm: configuration.tokens.algorithm,
    ...(configuration.tokens.keys === undefined ? {} : { directory: configuration.tokens.keys }),
    log,
  });
  const stores = configuration.users.map(({ path }) => openFileUserStore(path, { log }));
  if (stores.length === 0) log.warn("there are no users: nobody can log in");
  const hashing = createHashingPool(configuration.login.hashing);
  metrics.gauges.loginQueueLength = () => hashing.pending;
  const { attempts, within, ban } = configuration.login.throttle;
  const logins = createLoginService({
    credentials: createCredentialCheck(stores, hashing),
    throttle: createLoginThrottle({ attempts, withinMs: within, banMs: ban }, clock),
    issuer: issuerOf(configuration, keys, observer),
  });
  const tokens = verifierOf(configuration, keys, log, observer);
  metrics.gauges.tokenCacheEntries = () => tokens.entries();
  const upstreams = upstreamsOf(configuration);
  const forwarder = createForwarder({
    upstreams,
    identityHeaders: identityHeadersOf(configuration),
    bodyBytes: configuration.server.limits.bodyBytes,
    clock,
    observer,
  });
  const versions = versionSourceOf(configuration, upstreams, options.version);
  const version = versionEndpoint(versions.source);
  const authenticate = authenticateEndpoint({ logins, observer, clock });
  return {
    gate: {
      endpoints: new Map([
        [AUTHENTICATE_PATH, authenticate],
        ...VERSION_PATHS.map((path) => [path, version] as const),
      ]),
      tokens,
      findRoute: createRouteTable(configuration.routes.map(routeOf)),
      authorize,
      forwarder,
    },
    started: () => hashing.start(),
    closeWebSockets: () => forwarder.closeWebSockets(),
    async close() {
      for (const store of stores) store.close();
      tokens.close();
      await Promise.all([hashing.close(), forwarder.close(), versions.close()]);
    },
  };
}

function issuerOf({ tokens }: Configuration, keys: SigningKeys, observer: Observer) {
  const { issuer, audience, lifetime } = tokens;
  return createTokenIssuer({ issuer, audience, lifetimeMs: lifetime, keys, clock, observer });
}

function verifierOf({ tokens }: Configuration, keys: SigningKeys, log: Log, observer: Observer) {
  const { issuer, audience, maxBytes } = tokens;
  const trusted = tokens.trusted.map(({ clockSkew, ...rest }) => ({
    ...rest,
    clockSkewMs: clockSkew,
  }));
  const cacheEntries = tokens.cache.entries;
  return createTokenVerifier({
    ...{ issuer, audience, keys, cacheEntries, maxBytes, trusted, clock, log, observer },
  });
}

function identityHeadersOf({ identity }: Configuration) {
  const { headers } = identity;
  return typeof headers === "string" ? IDENTITY_PRESETS[headers] : headers;
}

function routeOf(row: Configuration["routes"][number]): Route {
  const { name, hosts, methods, auth, upstream, forwardAuthorization, rewrite } = row;
  return {
    name,
    auth,
    upstream,
    forwardAuthorization,
    path: "exact" in row ? { exact: row.exact } : { prefix: row.path },
    ...(hosts === undefined ? {} : { hosts }),
    ...(methods === undefined ? {} : { methods }),
    ...(row.require === undefined ? {} : { groups: row.require.groups }),
    ...(rewrite === undefined ? {} : { rewrite }),
  };
}

function upstreamsOf({ upstreams }: Configuration): UpstreamOptions[] {
  return Object.entries(upstreams).map(([name, { tls, ...rest }]) => ({
    name,
    ...rest,
    tls: tls && {
      ca: contentOf(tls.caFile),
      cert: contentOf(tls.certFile),
      key: contentOf(tls.keyFile),
      serverName: tls.serverName,
    },
  }));
}

function contentOf(file: string | undefined): string | undefined {
  return file === undefined ? undefined : readFileSync(file, "utf8");
}

function versionSourceOf(
  { version }: Configuration,
  upstreams: readonly UpstreamOptions[],
  own: string,
): { source: VersionSource; close(): Promise<void> } {
  const close = (): Promise<void> => Promise.resolve();
  if (version === undefined) return { source: fixedVersion(own), close };
  if ("text" in version) return { source: fixedVersion(version.text), close };
  if ("file" in version) return { source: fileVersion(version.file), close };
  if ("env" in version) return { source: fixedVersion(process.env[version.env] ?? ""), close };
  const { path, field } = version;
  const upstream = upstreams.find((row) => row.name === version.upstream);
  if (upstream === undefined) return { source: fixedVersion(own), close };
  const source = backendVersion({ upstream, path, field, clock });
  return { source, close: () => source.close() };
}
