import { Gauge, type Aggregator } from "prom-client";
import type { TargetState, UpstreamLoad } from "../../core/request/forwarder.ts";
import type { IssuerState } from "../../core/issuer-state.ts";
import type { DefineMetric } from "./counters.ts";
import { showIssuers } from "./issuer-metrics.ts";
import type { SharedStateGauge } from "./shared-state-metrics.ts";
import { showTargets } from "./target-metrics.ts";
import type { StoreState } from "./store-metrics.ts";

/** Functions that return the values of gauges on a scrape. The owner of each value replaces its function. */
export interface GaugeSources {
  /** Verified tokens in the cache. */
  tokenCacheEntries: () => number;
  /** Bytes held in memory on behalf of clients. */
  bufferedBytes: () => number;
  /** Logins that wait for a hashing thread. */
  loginQueueLength: () => number;
  draining: () => boolean;
  /** Whether the journal of revocations is writable; true if there is none. */
  revocationsWritable: () => boolean;
  /** The configured and the actual number of threads that accept clients. */
  workers: () => { readonly count: number; readonly alive: number };
  /**
   * The signing key; undefined if there is none. Times in milliseconds since the epoch; Infinity if it does not
   * expire.
   */
  signingKey: () => { readonly madeAt: number; readonly verifiesUntil: number } | undefined;
  /** The key that signs assertions, if assertions have their own keys. */
  assertionKey: () => { readonly verifiesUntil: number } | undefined;
  upstreamLoad: (upstream: string) => UpstreamLoad;
  /** The state of each target in all threads. */
  targets: () => Promise<readonly TargetState[]>;
  /** The trusted issuers and their keys. */
  issuers: () => readonly IssuerState[];
  storeState: (store: string) => StoreState;
  /** Undefined if replicas share nothing. */
  sharedState: () => SharedStateGauge | undefined;
}

/** Functions that set gauges when an event occurs. */
export interface GaugeSetters {
  /**
   * The configuration, or a file that it names, was reloaded. `atMs` is wall clock, in milliseconds since the epoch.
   */
  configReloaded(successful: boolean, atMs: number): void;
  /** Expiry of the served certificate, in seconds since the epoch. Not exposed before the first call. */
  certificateNotAfter(seconds: number): void;
}

export interface GaugeOptions {
  readonly version: string;
  readonly startedMs: number;
  readonly sources: GaugeSources;
  readonly inFlight: () => number;
}

type Show = (name: string, help: string, aggregator: Aggregator, read: () => number) => void;

/**
 * Registers all gauges without a `route` label. The aggregators define how to combine the values of several threads.
 */
export function registerGauges(define: DefineMetric, options: GaugeOptions): GaugeSetters {
  const show: Show = (name, help, aggregator, read) => {
    const { registry, ...head } = define(name, help);
    new Gauge({
      ...head,
      aggregator,
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  };
  show("http_requests_in_flight", "Requests in progress.", "sum", options.inFlight);
  showSources(show, options.sources);
  showIssuers(define, () => options.sources.issuers());
  showTargets(define, () => options.sources.targets());
  const setters = showReloads(show, options.startedMs);
  showBuild(define, options.version);
  return setters;
}

function showSources(show: Show, sources: GaugeSources): void {
  show("token_cache_entries", "Verified tokens in the cache.", "sum", () =>
    sources.tokenCacheEntries(),
  );
  show("buffered_bytes", "Bytes held in memory on behalf of clients.", "sum", () =>
    sources.bufferedBytes(),
  );
  show("login_queue_length", "Logins that wait for a hashing thread.", "sum", () =>
    sources.loginQueueLength(),
  );
  show(
    "signing_key_made_timestamp_seconds",
    "When the signing key was created; 0 if no key signs.",
    "max",
    () => (sources.signingKey()?.madeAt ?? 0) / 1000,
  );
  show(
    "signing_key_verifies_until_timestamp_seconds",
    "When the signing key expires; +Inf if it does not expire, 0 if no key signs.",
    "max",
    () => (sources.signingKey()?.verifiesUntil ?? 0) / 1000,
  );
  show(
    "assertion_key_verifies_until_timestamp_seconds",
    "When the key that signs assertions expires; +Inf if it does not expire, 0 if assertions have no key of their own.",
    "max",
    () => (sources.assertionKey()?.verifiesUntil ?? 0) / 1000,
  );
  show(
    "revocation_journal_writable",
    "0 while revocations cannot be written to their journal; a restart would lose them.",
    "min",
    () => Number(sources.revocationsWritable()),
  );
  show("draining", "1 while the proxy is stopping.", "max", () => Number(sources.draining()));
  show("workers", "Threads that should accept clients.", "max", () => sources.workers().count);
  show("workers_alive", "Threads that accept clients.", "max", () => sources.workers().alive);
}

function showReloads(show: Show, startedMs: number): GaugeSetters {
  let successful = true;
  let succeededMs = startedMs;
  let notAfter: number | undefined;
  show("config_last_reload_successful", "1 if the last reload succeeded.", "min", () =>
    Number(successful),
  );
  show(
    "config_last_reload_success_timestamp_seconds",
    "When the current configuration was read.",
    "max",
    () => succeededMs / 1000,
  );
  return {
    configReloaded(ok, atMs) {
      successful = ok;
      if (ok) succeededMs = atMs;
    },
    certificateNotAfter(seconds) {
      const first = notAfter === undefined;
      notAfter = seconds;
      if (!first) return;
      show(
        "tls_certificate_not_after_timestamp_seconds",
        "When the served certificate expires.",
        "min",
        () => notAfter ?? 0,
      );
    },
  };
}

function showBuild(define: DefineMetric, version: string): void {
  const help = "Always 1; the labels describe the running version.";
  const { registry, ...head } = define("build_info", help, "version", "node");
  const gauge = new Gauge({ ...head, aggregator: "first", registers: [registry] });
  gauge.set({ version, node: process.versions.node }, 1);
}
