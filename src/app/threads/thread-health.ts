/** A thread whose event loop has not turned for this many checks hangs. There is one check per second. */
export const HUNG_CHECKS = 10;
/** Maximum duration of a start, in checks: it loads all of Sallyport, perhaps with little CPU time. */
const START_CHECKS = 60;
/** After a life of at least this many checks, the next end of the thread counts as its first. */
const LONG_LIFE_CHECKS = 60;
/** Number of consecutive short lives after which the process is unhealthy. */
const UNHEALTHY_ENDS = 5;
/**
 * Backoff, in milliseconds: the first restart is immediate, the second happens after `FIRST_BACKOFF_MS`, and each
 * further one after twice the previous time.
 */
const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;

/** The result of one check of a thread. */
export interface HealthCheck {
  /** Whether its event loop has turned since the last check. */
  readonly turned: boolean;
  /** Whether it accepts clients. */
  readonly listens: boolean;
}

/** Judges a traffic thread by regular checks over all its lives. */
export class ThreadHealth {
  /** Checks since the thread last turned and served, in any life. */
  #away = 0;
  /** Checks since this life last turned. */
  #still = 0;
  #age = 0;
  /** Consecutive ends of short lives. */
  #ends = 0;

  /** @returns whether this life hangs. */
  check({ turned, listens }: HealthCheck): boolean {
    this.#age += 1;
    this.#still = turned ? 0 : this.#still + 1;
    this.#away = turned && listens ? 0 : this.#away + 1;
    if (this.#away === 0 && this.#age >= LONG_LIFE_CHECKS) this.#ends = 0;
    return listens ? this.#still >= HUNG_CHECKS : this.#age >= START_CHECKS;
  }

  started(): void {
    this.#age = 0;
    this.#still = 0;
  }

  /**
   * Records the end of a life.
   *
   * @returns how long to wait before the next one, in milliseconds, so that a thread that fails at start is not
   * restarted in a tight loop.
   */
  ended(): number {
    this.#ends += 1;
    return this.#ends === 1
      ? 0
      : Math.min(FIRST_BACKOFF_MS * 2 ** (this.#ends - 2), MAX_BACKOFF_MS);
  }

  /** A failure that is permanent or long-lasting; undefined if there is none. */
  get failure(): string | undefined {
    if (this.#ends >= UNHEALTHY_ENDS) return `has ended ${this.#ends} times in a row`;
    return this.#away >= HUNG_CHECKS ? `has not served for ${this.#away} s` : undefined;
  }
}
