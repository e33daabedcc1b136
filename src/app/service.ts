import type { Configuration } from "../config/configuration.ts";
import type { Snapshot } from "../config/snapshot.ts";
import { createResponseIds } from "../lib/http/response-ids.ts";
import { allocateCounters } from "../lib/async/shared-counts.ts";
import { createProofMemory, UsedProofs } from "../tokens/proofs/proof-memory.ts";
import { countInFlight } from "../policy/concurrency/concurrency-limiter.ts";
import type { RevocationQuery, RevocationResult } from "../server/admin/revoke-page.ts";
import type { DrainState } from "../server/admin/state-pages.ts";
import { notAfter } from "../server/tls/certificate.ts";
import { serverNamesOf } from "../server/tls/tls-listener.ts";
import type { RevocationService } from "../tokens/revocation/revocation-service.ts";
import { openLedger } from "./client-warnings.ts";
import { type startupWarningLog, startupWarnings } from "./startup-warnings.ts";
import { seriesOf, type ServerTls, workersOf } from "./gate/from-configuration.ts";
import {
  certificateEndsOf,
  gateFilesOf,
  keepValidCertificates,
  nextTls,
  revocationFileIn,
  servedIn,
  tlsOf,
} from "./from-files.ts";
import type { ApiKeySet } from "../tokens/api-keys/api-keys.ts";
import { KeyStores } from "./gate/key-stores.ts";
import { type Logins, openLogins } from "./gate/logins.ts";
import { openSignIns, type OpenSignIns } from "./gate/sign-ins.ts";
import { type AllKeys, openAllKeys, prepareKeys } from "./keys/all-keys.ts";
import type { Observation } from "./observation.ts";
import { prepareAll } from "./reload/reloader.ts";
import { createProbing, type Probing } from "./readiness.ts";
import type { ReloadStates } from "./reload/reload-states.ts";
import { departedUsers, openRevocations, revokeNamed } from "./revoking.ts";
import { openSharing, type Sharing } from "./sharing.ts";
import { startThreads, type Threads } from "./threads/threads.ts";
import { startTraffic, type Traffic, type TrafficChange, type TrafficOptions } from "./traffic.ts";
import type { CertificateEnd } from "../observe/metrics/gauges.ts";
import type { Metrics } from "../observe/metrics/metrics.ts";

/** The log, the metrics and the observer of the process. */
interface ServiceObservation extends Observation {
  /** Receives the state of each file that is reread separately from the configuration. */
  readonly reloads: ReloadStates;
  /** Logs the warnings that are new. */
  readonly warn: ReturnType<typeof startupWarningLog>;
}

/** The parts of a service that a reload changes. */
interface Parts extends AllKeys {
  readonly observation: ServiceObservation;
  readonly logins: Logins;
  readonly signIns: OpenSignIns;
  readonly revoking: RevocationService;
  readonly sharing: Sharing;
  readonly keyStores: KeyStores;
  readonly traffic: Traffic;
  /** Undefined if only the main thread serves clients. */
  readonly threads: Threads | undefined;
  /** The options that all of them share. */
  readonly options: TrafficOptions;
}

/**
 * Starts everything that serves clients. Rejects if the address is not available, and with a `ConfigError` if a file of
 * the snapshot cannot be used.
 */
export async function openService(
  snapshot: Snapshot,
  version: string,
  observation: ServiceObservation,
): Promise<Service> {
  const { configuration, files } = snapshot;
  const { log, metrics, observer, reloads, clock } = observation;
  const tls = await tlsOf(configuration, files.text, log);
  let service: Service | undefined;
  const allKeys = await openAllKeys(snapshot, { reloads, clock, log });
  const inForce = (): Configuration => service?.configuration ?? configuration;
  const sharing = openSharing(snapshot, observation);
  const revocations = { clock, log, share: sharing.revoke };
  const revoking = await openRevocations(snapshot, revocations, reloads.add().reloaded);
  const departed = departedUsers(inForce, revoking, { clock, log });
  const logins = await openLogins({
    configuration,
    files,
    keys: allKeys.keys,
    clock,
    log,
    observer,
    reloads,
    departed,
    attempts: sharing.attempts,
  });
  const signIns = await openSignIns(snapshot, { ...allKeys, revoking, clock, log, observer });
  await sharing.begin(logins, revoking);
  const keyStores = new KeyStores({ log, clock });
  const workers = workersOf(configuration);
  // The main thread has row 0. With several threads, its only listener is the admin listener.
  const shared = { memory: allocateCounters(workers + 1), row: 0 };
  const options: TrafficOptions = {
    configuration,
    version,
    ...allKeys,
    tls,
    clock,
    log,
    observer,
    reloads,
    files: gateFilesOf(configuration, files, await keyStores.open(snapshot)),
    logins: logins.service,
    signIns: signIns.service,
    revocations: revoking.list,
    publish: revoking.publish,
    ...sharing.limits,
    buffered: openLedger({ configuration, observer, clock, log, shared }),
    port: configuration.server.listen.port,
    shared: false,
    inFlight: countInFlight(),
    usedProofs: new UsedProofs(createProofMemory(1, clock.now())),
    nextId: idsOfMainThread(workers, clock.now()),
  };
  const threads =
    workers === 1 ? undefined : await startThreads(options, workers, observation.sink);
  const traffic = threads ?? (await startTraffic(options));
  const { address, port } = traffic;
  log.info("listening", { address, port, tls: tls !== undefined, workers });
  const opened = { logins, signIns, revoking, sharing, keyStores, traffic, threads };
  service = new Service({ observation, ...allKeys, ...opened, options });
  feedGauges(metrics, service);
  return service;
}

/** Returns ids that differ from those of the threads, which have the lower offsets. */
function idsOfMainThread(workers: number, nowMs: number): TrafficOptions["nextId"] {
  return workers === 1 ? createResponseIds(nowMs) : createResponseIds(nowMs, workers, workers + 1);
}

/** Everything that serves clients under the configuration in force. */
export class Service {
  readonly parts: Parts;
  readonly probing: Probing;
  #certificateEnds: readonly CertificateEnd[];
  #state: DrainState = "serving";
  #inForce: TrafficChange;
  #drained: Promise<boolean> | undefined;

  constructor(parts: Parts) {
    const { observation, keys, traffic, options } = parts;
    const { clock } = observation;
    this.parts = parts;
    this.#inForce = options;
    parts.keyStores.begin(this.#changeKeys);
    this.#certificateEnds = certificateEndsOf(options);
    this.probing = createProbing(options, {
      draining: () => this.#state !== "serving",
      issuers: () => traffic.issuers(),
      ownKeys: () => keys.verification.length > 0,
      workersAlive: this.workersAlive,
      stores: parts.logins.stores,
      clock,
      targets: async () => (await traffic.state()).targets,
    });
  }

  /** The configuration in force. */
  get configuration(): Configuration {
    return this.#inForce.configuration;
  }

  /** The certificate for clients that ask for none by name; undefined without TLS. */
  get certificate(): string | undefined {
    return this.#inForce.tls?.cert;
  }

  /** The maximum duration of a drain, in milliseconds. */
  get drainMs(): number {
    const { delay, timeout } = this.configuration.server.drain;
    return delay + timeout;
  }

  /** The number of threads that serve clients; undefined if the main thread does. */
  readonly workersAlive = (): number | undefined => this.parts.threads?.alive();

  /** Permanent failures of threads. */
  readonly failures = (): readonly string[] => this.parts.threads?.failures() ?? [];

  /** Returns the metrics of all threads in the exposition format. */
  metricsText(): Promise<string> {
    const { threads, observation } = this.parts;
    const { metrics } = observation;
    return threads === undefined ? metrics.text() : threads.metricsText(metrics);
  }

  /** Revokes the tokens that an operator names. @param by the address of the operator. */
  revoke(query: RevocationQuery, by: string): Promise<RevocationResult> {
    const { traffic, options } = this.parts;
    return traffic.query(({ tokens }) => revokeNamed(options, tokens, query, by));
  }

  /** Puts a snapshot in force as a whole, or rejects and changes nothing. */
  apply(snapshot: Snapshot): Promise<void> {
    return this.parts.keyStores.exclusively(() => this.#apply(snapshot));
  }

  /** Puts other API keys in force, or rejects and changes nothing. */
  readonly #changeKeys = async (apiKeys: ApiKeySet): Promise<void> => {
    const { configuration, files, tls } = this.#inForce;
    const next = { configuration, files: { ...files, apiKeys }, tls };
    const change = await this.parts.traffic.prepare(next);
    this.#inForce = next;
    await change.commit();
  };

  async #apply(snapshot: Snapshot): Promise<void> {
    const { observation, logins, signIns, revoking, keyStores, traffic, options } = this.parts;
    const { metrics, clock, warn } = observation;
    const { configuration, files } = snapshot;
    const before = this.#inForce;
    const gateFiles = gateFilesOf(configuration, files, before.files.apiKeys);
    let next = { configuration, files: gateFiles, tls: nextTls(snapshot, before.tls) };
    keepValidCertificates(before, next, clock.now());
    const warnings = await startupWarnings(snapshot, clock.now());
    const change = await prepareAll([
      () => prepareKeys(this.parts, snapshot),
      async () => revoking.prepare(revocationFileIn(configuration, files)),
      () => logins.prepare({ configuration, files }),
      () => signIns.prepare({ configuration, files }),
      () => this.probing.prepare(next),
      async () => {
        const prepared = await keyStores.prepare(snapshot);
        next = { ...next, files: { ...gateFiles, apiKeys: prepared.keys } };
        return prepared;
      },
      () => traffic.prepare(next),
    ]);
    // Nothing fails from here on.
    metrics.add(seriesOf(configuration));
    this.#inForce = next;
    this.#certificateEnds = certificateEndsOf(next);
    options.buffered.setLimit(configuration.server.limits.bufferedBytes);
    await change.commit();
    this.#reportOthers(before.tls);
    warn(configuration, warnings);
  }

  /** Logs the certificates that were not served before. */
  #reportOthers(before: ServerTls): void {
    const known = servedIn(before);
    for (const cert of servedIn(this.#inForce.tls)) {
      if (known.includes(cert)) continue;
      const ends = new Date(notAfter(cert) * 1000).toISOString();
      const [serverName] = serverNamesOf(cert);
      this.parts.observation.log.info("another certificate is served", {
        serverName,
        notAfter: ends,
      });
    }
  }

  /** The state of the drain. */
  get state(): DrainState {
    return this.#state;
  }

  /** When certificates end. */
  get certificateEnds(): readonly CertificateEnd[] {
    return this.#certificateEnds;
  }

  /**
   * Drains only the traffic: metrics and health stay available. Resolves with whether all requests finished in time. A
   * second call joins the first.
   */
  drain(): Promise<boolean> {
    if (this.#drained === undefined) {
      this.#state = "draining";
      this.#drained = this.parts.traffic.drain().finally(() => (this.#state = "drained"));
    }
    return this.#drained;
  }

  /** Releases everything that remains after the drain. */
  async close(): Promise<void> {
    const { keys, assertionKeys, logins, signIns, revoking, sharing, keyStores } = this.parts;
    signIns.close();
    for (const each of [keys, assertionKeys]) each.close();
    const state = sharing.state?.close();
    await Promise.all([logins.close(), revoking.close(), keyStores.close(), state]);
  }

  /** Terminates at once, without waiting for running requests. */
  async abandon(): Promise<void> {
    await Promise.all([this.parts.traffic.abandon(), this.close()]);
  }
}

/** Connects the gauges to the parts of a service. */
function feedGauges({ gauges }: Metrics, service: Service): void {
  const { keys, assertionKeys, logins, revoking } = service.parts;
  const { sharing, keyStores, traffic, options } = service.parts;
  const count = workersOf(options.configuration);
  gauges.loginQueueLength = logins.waiting;
  gauges.revocationsWritable = () => revoking.journalWritable;
  gauges.sharedState = () => sharing.state;
  gauges.storeState = logins.storeState;
  gauges.keyStores = () => keyStores.states();
  gauges.signingKey = () => keys.signer;
  gauges.certificateEnds = () => service.certificateEnds;
  gauges.assertionKey = () => assertionKeys.signer;
  gauges.draining = () => service.state !== "serving";
  gauges.bufferedBytes = () => options.buffered.bytes;
  gauges.workers = () => ({ count, alive: service.workersAlive() ?? count });
  gauges.tokenCacheEntries = traffic.tokenCacheEntries;
  gauges.upstreamLoad = traffic.upstreamLoad;
  gauges.targets = async () => (await traffic.state()).targets;
  // With several threads, each thread has its own gauge.
  if (count === 1) gauges.issuers = () => traffic.issuers();
}
