import type { Log } from "../../core/log.ts";
import type { Clock } from "../../lib/clock.ts";

/** Time after which a lasting outage is logged again, in milliseconds. */
const LOG_AGAIN_MS = 600_000;

/**
 * Tracks consecutive failures to fetch the keys of an issuer. Logs when an outage begins, every ten minutes, and when
 * it ends.
 */
export class FetchOutage {
  readonly #issuer: string;
  readonly #log: Log;
  readonly #clock: Clock;
  #failures = 0;
  #loggedAt = 0;

  constructor(issuer: string, { log, clock }: { readonly log: Log; readonly clock: Clock }) {
    this.#issuer = issuer;
    this.#log = log;
    this.#clock = clock;
  }

  /** @returns the number of consecutive failures. */
  failed(reason: string, keys: number): number {
    this.#failures += 1;
    const now = this.#clock.monotonic();
    if (this.#failures === 1 || now - this.#loggedAt >= LOG_AGAIN_MS) {
      this.#loggedAt = now;
      this.#log.warn("the keys of a trusted issuer could not be fetched", {
        ...{ issuer: this.#issuer, reason, keys },
        attempts: this.#failures,
      });
    }
    return this.#failures;
  }

  succeeded(): void {
    if (this.#failures > 0) {
      const fields = { issuer: this.#issuer, attempts: this.#failures };
      this.#log.info("the keys of a trusted issuer can be fetched again", fields);
    }
    this.#failures = 0;
  }
}
