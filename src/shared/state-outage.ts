import type { Log } from "../core/log.ts";
import type { Clock } from "../lib/clock.ts";

/** The minimum time between two warnings, in milliseconds: an unstable server must not flood the log. */
const QUIET_MS = 10_000;

/** Logs when the state server becomes unavailable and when it is available again. */
export class StateOutage {
  readonly #log: Log;
  readonly #clock: Clock;
  #since: number | undefined;
  #told = -Infinity;
  #tells = false;

  constructor({ log, clock }: { readonly log: Log; readonly clock: Clock }) {
    this.#log = log;
    this.#clock = clock;
  }

  failed(reason: string): void {
    const now = this.#clock.monotonic();
    this.#since ??= now;
    if (this.#tells || now - this.#told < QUIET_MS) return;
    this.#told = now;
    this.#tells = true;
    this.#log.warn("the state server cannot be used, each replica counts for itself", { reason });
  }

  /** @param lost the number of login attempts that were not published to other replicas. */
  answered(lost: number): void {
    if (this.#tells) {
      const seconds = Math.round((this.#clock.monotonic() - (this.#since ?? 0)) / 1000);
      this.#log.info("the state server can be used again", { seconds, lost });
    }
    this.#since = undefined;
    this.#tells = false;
  }
}
