import type { Log } from "../core/log.ts";
import type { Metrics } from "../observe/metrics/metrics.ts";
import { notAfter } from "../server/tls/certificate.ts";

/** Reports the served certificate: its expiry as a metric, and changes in the log. */
export class ServedCertificate {
  readonly #metrics: Pick<Metrics, "certificateNotAfter">;
  readonly #log: Log;
  #text: string | undefined;

  /** @param text valid PEM; undefined without TLS. */
  constructor(
    text: string | undefined,
    observation: { readonly metrics: Pick<Metrics, "certificateNotAfter">; readonly log: Log },
  ) {
    this.#metrics = observation.metrics;
    this.#log = observation.log;
    this.#text = text;
    if (text !== undefined) this.#metrics.certificateNotAfter(notAfter(text));
  }

  /** Reports the certificate if it has changed. TLS cannot be turned on or off after the start. */
  serve(text: string | undefined): void {
    if (text === undefined || this.#text === undefined || text === this.#text) return;
    this.#text = text;
    const ends = notAfter(text);
    this.#metrics.certificateNotAfter(ends);
    this.#log.info("another certificate is served", {
      notAfter: new Date(ends * 1000).toISOString(),
    });
  }
}
