import { Counter, Gauge } from "prom-client";
import type { IssuerState } from "../../core/issuer-state.ts";
import type { DefineMetric } from "./counters.ts";

/**
 * Registers the metrics of the keys of trusted issuers, read on a scrape. If threads differ, the worst value counts.
 */
export function showIssuers(define: DefineMetric, read: () => readonly IssuerState[]): void {
  const { registry, ...usable } = define(
    "trusted_keys_usable",
    "1 while tokens of the trusted issuer can be verified.",
    "issuer",
  );
  new Gauge({
    ...{ ...usable, aggregator: "min", registers: [registry] },
    collect() {
      this.reset();
      for (const each of read()) this.set({ issuer: each.issuer }, Number(each.usable));
    },
  });
  const { registry: _same, ...fetched } = define(
    "trusted_keys_fetched_timestamp_seconds",
    "When the keys of the issuer were last fetched.",
    "issuer",
  );
  new Gauge({
    ...{ ...fetched, aggregator: "min", registers: [registry] },
    collect() {
      this.reset();
      for (const { issuer, fetches } of read()) {
        if (fetches?.fetchedAt !== undefined) this.set({ issuer }, fetches.fetchedAt / 1000);
      }
    },
  });
  showFetches(define, read);
}

function showFetches(define: DefineMetric, read: () => readonly IssuerState[]): void {
  const { registry, ...head } = define(
    "trusted_keys_fetches_total",
    "Fetches of the keys of the issuer.",
    "issuer",
    "result",
  );
  new Counter({
    ...{ ...head, registers: [registry] },
    collect() {
      this.reset();
      for (const { issuer, fetches } of read()) {
        if (fetches === undefined) continue;
        this.inc({ issuer, result: "success" }, fetches.succeeded);
        this.inc({ issuer, result: "failure" }, fetches.failed);
      }
    },
  });
}
