import type { TargetState } from "../../upstream/pool/target.ts";
import type { UpstreamLoad } from "../../upstream/pool/upstreams.ts";
import type { IssuerState, StatusKeyStore } from "../../core/status.ts";
import type { MetricDefinitions } from "./define-metrics.ts";
import type { LabelSet, Sample } from "./series.ts";

/** The state of a user store. A value is undefined if it does not apply to the store. */
export interface StoreState {
  readonly connections: number | undefined;
  /** Users with an outdated password hash. */
  readonly outdated: number | undefined;
}

/** The state server from the point of view of this process. */
interface SharedState {
  readonly up: boolean;
  /** Login attempts that were not published to other replicas. */
  readonly lost: number;
}

/** When the first certificate of a file ends. */
export interface CertificateEnd {
  readonly of: "tls_certificate" | "tls_client_ca" | "upstream_certificate" | "upstream_ca";
  /** The upstream, or a name of the server whose certificate it is; undefined for the first, and for the authorities of clients. */
  readonly name?: string;
  /** In seconds since the epoch. */
  readonly notAfter: number;
}

/** Functions that return the values of gauges on a scrape. The owner of each value replaces its function. */
export class GaugeSources {
  /** Verified tokens in the cache. */
  tokenCacheEntries = (): number => 0;
  /** Bytes held in memory on behalf of clients. */
  bufferedBytes = (): number => 0;
  /** Logins that wait for a hashing thread. */
  loginQueueLength = (): number => 0;
  draining = (): boolean => false;
  /** 48 bits of the hash of the configuration in force; undefined in a thread that does not know it. */
  configHash = (): number | undefined => undefined;
  /** Whether the journal of revocations is writable; true if there is none. */
  revocationsWritable = (): boolean => true;
  /** The configured and the actual number of threads that accept clients. */
  workers = (): { readonly count: number; readonly alive: number } => ({ count: 0, alive: 0 });
  /**
   * The signing key; undefined if there is none. Times in milliseconds since the epoch; Infinity if it does not
   * expire.
   */
  signingKey = (): { readonly madeAt: number; readonly verifiesUntil: number } | undefined =>
    undefined;
  /** The key that signs assertions, if assertions have their own keys. */
  assertionKey = (): { readonly verifiesUntil: number } | undefined => undefined;
  certificateEnds = (): readonly CertificateEnd[] => [];
  upstreamLoad: (upstream: string) => UpstreamLoad = () => NO_LOAD;
  /** The state of each target in all threads. */
  targets = async (): Promise<readonly TargetState[]> => [];
  /** The trusted issuers and their keys. */
  issuers = (): readonly IssuerState[] => [];
  /** The stores of API keys; none in a thread that does not read them. */
  keyStores = (): readonly StatusKeyStore[] => [];
  storeState: (store: string) => StoreState = () => NO_STATE;
  /** Undefined if replicas share nothing. */
  sharedState = (): SharedState | undefined => undefined;
}

const NO_LOAD: UpstreamLoad = { inFlight: 0, waiting: 0, leftOut: 0, targets: 0 };
const NO_STATE: StoreState = { connections: undefined, outdated: undefined };

/** Defines the load of each upstream. */
export function defineLoads(
  define: MetricDefinitions,
  upstreams: LabelSet,
  sources: GaugeSources,
): void {
  const load = (name: string, help: string, part: keyof UpstreamLoad): void => {
    const read = () => upstreams.samples((upstream) => sources.upstreamLoad(upstream)[part]);
    define.gauge(name, help, "sum", read, upstreams.names);
  };
  load("upstream_requests_in_flight", "Requests in progress at the backends.", "inFlight");
  load("upstream_queue_length", "Requests that wait for a connection.", "waiting");
  load("upstream_targets", "Known targets.", "targets");
  load("upstream_targets_left_out", "Targets that are currently not used.", "leftOut");
}

/** Defines the metrics of the keys of trusted issuers. If threads differ, the worst value counts. */
function defineIssuers(define: MetricDefinitions, sources: GaugeSources): void {
  const byIssuer = (
    name: string,
    help: string,
    read: (issuer: IssuerState) => number | undefined,
  ): void => {
    const samples = () =>
      sources.issuers().flatMap((each): Sample[] => {
        const value = read(each);
        return value === undefined ? [] : [[{ issuer: each.issuer }, value]];
      });
    define.gauge(name, help, "min", samples, ["issuer"]);
  };
  byIssuer(
    "trusted_keys_usable",
    "1 while tokens of the trusted issuer can be verified.",
    ({ usable }) => Number(usable),
  );
  byIssuer(
    "trusted_keys_fetched_timestamp_seconds",
    "When the keys of the issuer were last fetched.",
    ({ fetches }) => fetches?.fetchedAt && fetches.fetchedAt / 1000,
  );
  define.readCounter(
    "trusted_keys_fetches_total",
    "Fetches of the keys of the issuer.",
    () =>
      sources.issuers().flatMap(({ issuer, fetches }): Sample[] =>
        fetches === undefined
          ? []
          : [
              [{ issuer, result: "success" }, fetches.succeeded],
              [{ issuer, result: "failure" }, fetches.failed],
            ],
      ),
    ["issuer", "result"],
  );
}

/** Defines the state of each store of API keys. */
function defineKeyStores(define: MetricDefinitions, sources: GaugeSources): void {
  const gauge = (name: string, help: string, read: (store: StatusKeyStore) => number): void => {
    const samples = () =>
      sources.keyStores().map((each): Sample => [{ store: each.name }, read(each)]);
    define.gauge(name, help, "max", samples, ["store"]);
  };
  gauge("api_keys", "API keys of a store, with disabled and expired ones.", ({ keys = 0 }) => keys);
  gauge(
    "api_keys_next_expiry_timestamp_seconds",
    "When the next API key of a store expires; +Inf if none will.",
    ({ nextExpiry }) => nextExpiry / 1000,
  );
  gauge(
    "api_key_store_readable",
    "1 if the last reading of the store succeeded; 0 while the earlier keys stay.",
    ({ failingSince }) => Number(failingSince === undefined),
  );
}

/** Defines the state of each target; each address of a resolved name is a target. */
function defineTargets(define: MetricDefinitions, sources: GaugeSources): void {
  const read = async () =>
    (await sources.targets()).map((target): Sample => {
      const { upstream, target: address, protocol, negotiated = protocol, state } = target;
      return [{ upstream, target: address, protocol: negotiated }, Number(state === "available")];
    });
  const help = "1 while the target is used, 0 while it is left out.";
  const labels = ["upstream", "target", "protocol"];
  define.gauge("upstream_target_available", help, "min", read, labels);
  define.gauge(
    "upstream_oldest_request_seconds",
    "How long the oldest request at the target has waited for the head of its answer; 0 if none waits.",
    "max",
    async () =>
      (await sources.targets()).map(({ upstream, target, oldestMs }): Sample => {
        return [{ upstream, target }, oldestMs / 1000];
      }),
    ["upstream", "target"],
  );
}

/** Defines when certificates end that we show, or that others show to us. */
function defineCertificateEnds(define: MetricDefinitions, sources: GaugeSources): void {
  const ends = (of: CertificateEnd["of"], help: string, label = "upstream"): void => {
    const read = () =>
      sources
        .certificateEnds()
        .filter((each) => each.of === of)
        .map(({ name, notAfter }): Sample => [
          name === undefined ? {} : { [label]: name },
          notAfter,
        ]);
    const labels = of === "tls_client_ca" ? [] : [label];
    define.gauge(`${of}_not_after_timestamp_seconds`, help, "min", read, labels);
  };
  ends("tls_certificate", "When a served certificate expires.", "name");
  ends("tls_client_ca", "When the first authority for clients expires.");
  ends("upstream_certificate", "When the certificate for the backends expires.");
  ends("upstream_ca", "When the first authority for the backends expires.");
}

/** Defines the gauges about reloads. Returns a function that sets them. */
function defineReloads(define: MetricDefinitions, startedMs: number) {
  let successful = true;
  let succeededMs = startedMs;
  define.gauge("config_last_reload_successful", "1 if the last reload succeeded.", "min", () =>
    Number(successful),
  );
  define.gauge(
    "config_last_reload_success_timestamp_seconds",
    "When the current configuration was read.",
    "max",
    () => succeededMs / 1000,
  );
  return (ok: boolean, atMs: number): void => {
    successful = ok;
    if (ok) succeededMs = atMs;
  };
}

/**
 * Defines the gauges of a process or thread, except those of its routes, upstreams and stores.
 * @returns `Metrics.configReloaded`.
 */
export function defineGauges(define: MetricDefinitions, sources: GaugeSources, startedMs: number) {
  define.gauge("token_cache_entries", "Verified tokens in the cache.", "sum", () =>
    sources.tokenCacheEntries(),
  );
  define.gauge("buffered_bytes", "Bytes held in memory on behalf of clients.", "sum", () =>
    sources.bufferedBytes(),
  );
  define.gauge("login_queue_length", "Logins that wait for a hashing thread.", "sum", () =>
    sources.loginQueueLength(),
  );
  define.gauge(
    "signing_key_made_timestamp_seconds",
    "When the signing key was created; 0 if no key signs.",
    "max",
    () => (sources.signingKey()?.madeAt ?? 0) / 1000,
  );
  define.gauge(
    "signing_key_verifies_until_timestamp_seconds",
    "When the signing key expires; +Inf if it does not expire, 0 if no key signs.",
    "max",
    () => (sources.signingKey()?.verifiesUntil ?? 0) / 1000,
  );
  define.gauge(
    "assertion_key_verifies_until_timestamp_seconds",
    "When the key that signs assertions expires; +Inf if it does not expire, 0 if assertions have no key of their own.",
    "max",
    () => (sources.assertionKey()?.verifiesUntil ?? 0) / 1000,
  );
  define.gauge(
    "revocation_journal_writable",
    "0 while revocations cannot be written to their journal; a restart would lose them.",
    "min",
    () => Number(sources.revocationsWritable()),
  );
  const hashHelp = "The first 48 bits of the hash of the configuration in force, without secrets.";
  define.gauge("config_hash", hashHelp, "max", () => sources.configHash());
  define.gauge("draining", "1 while the proxy is stopping.", "max", () =>
    Number(sources.draining()),
  );
  define.gauge(
    "workers",
    "Threads that should accept clients.",
    "max",
    () => sources.workers().count,
  );
  define.gauge(
    "workers_alive",
    "Threads that accept clients.",
    "max",
    () => sources.workers().alive,
  );
  defineIssuers(define, sources);
  defineKeyStores(define, sources);
  defineTargets(define, sources);
  defineCertificateEnds(define, sources);
  return defineReloads(define, startedMs);
}
