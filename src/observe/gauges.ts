import { Gauge, type Aggregator } from "prom-client";
import type { UpstreamLoad } from "../core/forwarder.ts";
import type { Introduce } from "./counters.ts";

/** Numbers that others keep, read on a scrape. Whoever owns one replaces the function. */
export interface GaugeSources {
  /** Verified tokens in the cache. */
  tokenCacheEntries: () => number;
  /** Logins that wait for a hash. */
  loginQueueLength: () => number;
  draining: () => boolean;
  /** The key that signs; undefined when none does. Milliseconds since the epoch, Infinity for no end. */
  signingKey: () => { readonly madeAt: number; readonly verifiesUntil: number } | undefined;
  upstreamLoad: (upstream: string) => UpstreamLoad;
}

/** Numbers that are set when something happens. */
export interface GaugeSetters {
  /** The configuration, or a file that it names, was read again. `atMs` is wall clock. */
  configReloaded(successful: boolean, atMs: number): void;
  /** End of the certificate that is served, in seconds since the epoch. Not shown before the first call. */
  certificateNotAfter(seconds: number): void;
}

export interface GaugeOptions {
  readonly version: string;
  readonly startedMs: number;
  readonly sources: GaugeSources;
  readonly inFlight: () => number;
}

/** Registers every gauge without a route. The aggregators say what several threads amount to. */
export function registerGauges(introduce: Introduce, options: GaugeOptions): GaugeSetters {
  const { sources } = options;
  let successful = true;
  let succeededMs = options.startedMs;
  let notAfter: number | undefined;

  const show = (name: string, help: string, aggregator: Aggregator, read: () => number): void => {
    const { registry, ...head } = introduce(name, help);
    new Gauge({
      ...head,
      aggregator,
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  };

  show("http_requests_in_flight", "Requests begun and not yet answered.", "sum", options.inFlight);
  show("token_cache_entries", "Verified tokens in the cache.", "sum", () =>
    sources.tokenCacheEntries(),
  );
  show("login_queue_length", "Logins that wait for their password to be hashed.", "sum", () =>
    sources.loginQueueLength(),
  );
  show(
    "signing_key_made_timestamp_seconds",
    "When the key that signs was made; 0 when none signs.",
    "max",
    () => (sources.signingKey()?.madeAt ?? 0) / 1000,
  );
  show(
    "signing_key_verifies_until_timestamp_seconds",
    "When the key that signs ends; +Inf when it has no end, 0 when none signs.",
    "max",
    () => (sources.signingKey()?.verifiesUntil ?? 0) / 1000,
  );
  show("draining", "1 while the proxy is stopping.", "max", () => Number(sources.draining()));
  show("config_last_reload_successful", "1 when what was read last is in force.", "min", () =>
    Number(successful),
  );
  show(
    "config_last_reload_success_timestamp_seconds",
    "When the configuration in force was read.",
    "max",
    () => succeededMs / 1000,
  );
  const { registry, ...build } = introduce(
    "build_info",
    "Always 1; the labels tell what is running.",
    "version",
    "node",
  );
  new Gauge({ ...build, aggregator: "first", registers: [registry] }).set(
    { version: options.version, node: process.versions.node },
    1,
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
        "When the certificate that is served ends.",
        "min",
        () => notAfter ?? 0,
      );
    },
  };
}
