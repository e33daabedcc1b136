/** Checks are a second apart. A thread whose event loop has not turned for this many of them hangs. */
export const HUNG_CHECKS = 10;
/** Checks that a start may take: it loads all of Sallyport, perhaps with little CPU time. */
const START_CHECKS = 60;
/** After a life of this many checks, the next end of a thread counts as its first. */
const LONG_LIFE_CHECKS = 60;
/** Consecutive short lives that make the process unhealthy. */
const UNHEALTHY_ENDS = 5;
/**
 * Backoff in milliseconds: the first restart is immediate, the second after `FIRST_REST_MS`, each further one after
 * twice the time.
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
  /** Checks since it last turned and served, in any life. */
  #away = 0;
  /** Checks since this life last turned. */
  #still = 0;
  #age = 0;
  /** Consecutive ends without a long life in between. */
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

  /** A failure that is permanent or lasts long; undefined if there is none. */
  get failure(): string | undefined {
    if (this.#ends >= UNHEALTHY_ENDS) return `has ended ${this.#ends} times in a row`;
    return this.#away >= HUNG_CHECKS ? `has not served for ${this.#away} s` : undefined;
  }
}
