import type { Log } from "../../../core/log.ts";
import type { Clock } from "../../../lib/clock.ts";

/** Interval at which a lasting outage is logged again. */
const REMIND_MS = 600_000;
/**
 * Minimum interval between two outages in the log. Without it, a client that can make a store fail (with a name that
 * occurs twice, for example) could flood the log.
 */
const QUIET_MS = 10_000;

/** Tracks consecutive failures of one store. Logs when they begin, every ten minutes, and when they end. */
export class StoreOutage {
  readonly #store: string;
  readonly #log: Log;
  readonly #clock: Clock;
  #failures = 0;
  #told = -Infinity;
  #tells = false;

  constructor(store: string, { log, clock }: { readonly log: Log; readonly clock: Clock }) {
    this.#store = store;
    this.#log = log;
    this.#clock = clock;
  }

  failed(reason: string): void {
    this.#failures += 1;
    const now = this.#clock.monotonic();
    if (now - this.#told < (this.#tells ? REMIND_MS : QUIET_MS)) return;
    this.#told = now;
    this.#tells = true;
    this.#log.error("a user store is unavailable, its users cannot log in", {
      ...{ store: this.#store, reason, attempts: this.#failures },
    });
  }

  answered(): void {
    if (this.#tells) {
      const fields = { store: this.#store, attempts: this.#failures };
      this.#log.info("a user store is available again", fields);
    }
    this.#tells = false;
    this.#failures = 0;
  }
}
