import { GateError } from "../../../core/request/errors.ts";
import type { Log } from "../../../core/log.ts";
import type { Clock } from "../../../lib/clock.ts";
import { withTimeout } from "../../../lib/async/with-timeout.ts";
import { HashingQueue } from "../../hashing/hashing-queue.ts";
import type { AttemptOrigin } from "../../throttle/login-throttle.ts";
import { StoreOutage } from "./store-outage.ts";
import { LATE, reasonOf, StoreUnavailable } from "./store-unavailable.ts";

export interface AccessOptions {
  /** For the log. */
  readonly store: string;
  /** Maximum number of concurrent queries. */
  readonly connections: number;
  /** How long an answer may take, the wait for a connection included; milliseconds. */
  readonly timeout: number;
  /** How many more may wait. */
  readonly queue: number;
  readonly log: Log;
  readonly clock: Clock;
}

interface Waiting {
  readonly turn: PromiseWithResolvers<void>;
  over: boolean;
}

const OVER = Symbol("over");

/** The way to a store on another machine: bounded in number and in time, in the fair order in which hashes are computed. */
export class StoreAccess {
  readonly #options: AccessOptions;
  readonly #outage: StoreOutage;
  readonly #waiting: HashingQueue<Waiting>;
  #running = 0;

  constructor(options: AccessOptions) {
    this.#options = options;
    this.#outage = new StoreOutage(options.store, options);
    this.#waiting = new HashingQueue(options.queue);
  }

  /**
   * Runs a query when it is its turn.
   *
   * @param work has to end what it holds when the milliseconds are over that it is given; nobody waits for it then.
   * @throws StoreUnavailable whatever the store's fault is, and GateError `login_queue_full`.
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
      this.#outage.answered();
      return result;
    } catch (error) {
      this.#outage.failed(reasonOf(error));
      throw new StoreUnavailable(reasonOf(error), error);
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
}

function queueFull(): GateError {
  return new GateError("login_queue_full", { reason: "queue_full", retryAfter: 1 });
}
