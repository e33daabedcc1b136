import type { Log } from "../core/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import { notAfter } from "../server/certificate.ts";

/** Tells which certificate is served: its end to whoever watches, a change in the log. */
export class ServedCertificate {
  readonly #metrics: Pick<Metrics, "certificateNotAfter">;
  readonly #log: Log;
  #text: string | undefined;

  /** @param text PEM, sound; undefined without TLS. */
  constructor(
    text: string | undefined,
    told: { readonly metrics: Pick<Metrics, "certificateNotAfter">; readonly log: Log },
  ) {
    this.#metrics = told.metrics;
    this.#log = told.log;
    this.#text = text;
    if (text !== undefined) this.#metrics.certificateNotAfter(notAfter(text));
  }

  /** Another takes its place, or the same stays; whether there is TLS at all is decided at start. */
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
