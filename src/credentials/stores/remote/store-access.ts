import type { Log } from "../../../core/log.ts";
import type { Clock } from "../../../lib/clock.ts";
import { withTimeout } from "../../../lib/async/with-timeout.ts";
import { HashingQueue, queueFull } from "../../hashing/hashing-queue.ts";
import type { AttemptOrigin } from "../../throttle/login-throttle.ts";
import { Outage } from "../../../lib/outage.ts";
import { LATE, remoteFailure } from "../../../lib/text/remote-error.ts";
import { StoreUnavailable } from "./store-unavailable.ts";

export interface AccessOptions {
  /** For the log. */
  readonly store: string;
  /** Maximum number of concurrent queries. */
  readonly connections: number;
  /** Maximum response time in milliseconds, including the wait for a connection. */
  readonly timeout: number;
  /** Maximum number of queries that wait. */
  readonly queue: number;
  readonly log: Log;
  readonly clock: Clock;
}

interface Waiting {
  readonly turn: PromiseWithResolvers<void>;
  over: boolean;
}

const OVER = Symbol("over");

/**
 * Access to a remote store. Limits the number and the duration of queries, and orders them as fairly as the computation
 * of hashes.
 */
export class StoreAccess {
  readonly #options: AccessOptions;
  readonly #outage: Outage;
  readonly #waiting: HashingQueue<Waiting>;
  #running = 0;

  constructor(options: AccessOptions) {
    this.#options = options;
    this.#outage = new Outage(options.clock);
    this.#waiting = new HashingQueue(options.queue);
  }

  /**
   * Runs a query when its turn comes.
   *
   * @param work receives the milliseconds left, and must release its resources when they are over. Nobody waits for its
   * result after that.
   * @throws StoreUnavailable for every failure of the store, and GateError `login_queue_full`.
   */
  async run<Result>(
    origin: AttemptOrigin,
    work: (leftMs: number) => Promise<Result>,
  ): Promise<Result> {
    const { connections, timeout, clock } = this.#options;
    const end = clock.monotonic() + timeout;
    if (this.#running < connections) this.#running += 1;
    else await this.#wait(origin);
    try {
      const leftMs = Math.max(1, Math.ceil(end - clock.monotonic()));
      const result = await withTimeout(work(leftMs), leftMs, OVER);
      if (result === OVER) throw new StoreUnavailable(LATE);
      this.#logRecovery();
      return result;
    } catch (error) {
      const reason = remoteFailure(error);
      this.#logFailure(reason);
      throw new StoreUnavailable(reason, error);
    } finally {
      this.#next();
    }
  }

  /** A woken request already counts as running. */
  async #wait(origin: AttemptOrigin): Promise<void> {
    const job: Waiting = { turn: Promise.withResolvers(), over: false };
    this.#waiting.add(job, origin)?.turn.reject(queueFull());
    const timer = setTimeout(() => {
      job.over = true;
      job.turn.reject(new StoreUnavailable("no connection was free in time"));
    }, this.#options.timeout);
    try {
      await job.turn.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  #next(): void {
    for (let job = this.#waiting.next(); job !== undefined; job = this.#waiting.next()) {
      if (!job.over) return job.turn.resolve();
    }
    this.#running -= 1;
  }

  #logFailure(reason: string): void {
    const outage = this.#outage.failed();
    if (outage === undefined) return;
    const { store, log } = this.#options;
    log.error("a user store is unavailable, its users cannot log in", {
      ...{ store, reason, attempts: outage.attempts },
    });
  }

  #logRecovery(): void {
    const ended = this.#outage.succeeded();
    if (ended === undefined) return;
    const { store, log } = this.#options;
    log.info("a user store is available again", { store, attempts: ended.attempts });
  }
}
