import { withTimeout } from "../../../lib/async/with-timeout.ts";
import { HashingQueue, queueFull } from "../../hashing/hashing-queue.ts";
import type { AttemptOrigin } from "../../throttle/login-throttle.ts";
import { Outage } from "../../../lib/outage.ts";
import { LATE, RemoteError, remoteFailure } from "../../../lib/text/remote-error.ts";
import type { StoreContext } from "../user-store.ts";

/** A store could not be asked, or gave no answer that can be used. */
export class StoreUnavailable extends RemoteError {}

const UNAVAILABLE = { result: "unavailable" } as const;

interface AccessSettings {
  /** Maximum number of concurrent queries. */
  readonly connections: number;
  /** Maximum response time in milliseconds, including the wait for a connection. */
  readonly timeout: number;
}

interface Waiting {
  /** Resolves to whether the turn has come in time. */
  readonly turn: PromiseWithResolvers<boolean>;
  over: boolean;
}

const OVER = Symbol("over");
/** How long a store counts as failing if nobody asks it again, in milliseconds. */
const FAILING_MS = 60_000;

/**
 * Access to a remote store. Limits the number and the duration of queries, and orders them as fairly as the computation
 * of hashes.
 */
export class StoreAccess {
  readonly #store: string;
  readonly #settings: AccessSettings;
  readonly #context: StoreContext;
  readonly #outage: Outage;
  readonly #waiting: HashingQueue<Waiting>;
  #running = 0;
  /** Monotonic, in milliseconds. */
  #failedAt = -Infinity;

  /** @param store its name in the log. */
  constructor(store: string, settings: AccessSettings, context: StoreContext) {
    this.#store = store;
    this.#settings = settings;
    this.#context = context;
    this.#outage = new Outage(context.clock);
    this.#waiting = new HashingQueue(context.queue);
  }

  /** See `UserStore`. */
  readonly failing = (): boolean =>
    this.#outage.failures > 0 && this.#context.clock.monotonic() < this.#failedAt + FAILING_MS;

  /**
   * Runs a query when its turn comes. Every failure of the store has the result `unavailable`.
   *
   * @param work receives the milliseconds left, and must release its resources when they are over. Nobody waits for its
   * result after that.
   * @throws GateError `login_queue_full`.
   */
  async run<Result>(
    origin: AttemptOrigin,
    work: (leftMs: number) => Promise<Result>,
  ): Promise<Result | typeof UNAVAILABLE> {
    const { connections, timeout } = this.#settings;
    const { clock } = this.#context;
    const end = clock.monotonic() + timeout;
    if (this.#running < connections) this.#running += 1;
    else if (!(await this.#wait(origin))) return UNAVAILABLE;
    try {
      const leftMs = Math.max(1, Math.ceil(end - clock.monotonic()));
      const result = await withTimeout(work(leftMs), leftMs, OVER);
      if (result === OVER) throw new StoreUnavailable(LATE);
      this.#logRecovery();
      return result;
    } catch (error) {
      this.#logFailure(remoteFailure(error));
      return UNAVAILABLE;
    } finally {
      this.#next();
    }
  }

  /** A woken request already counts as running. */
  async #wait(origin: AttemptOrigin): Promise<boolean> {
    const job: Waiting = { turn: Promise.withResolvers(), over: false };
    this.#waiting.add(job, origin)?.turn.reject(queueFull());
    const timer = setTimeout(() => {
      job.over = true;
      job.turn.resolve(false);
    }, this.#settings.timeout);
    try {
      return await job.turn.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  #next(): void {
    for (let job = this.#waiting.next(); job !== undefined; job = this.#waiting.next()) {
      if (!job.over) return job.turn.resolve(true);
    }
    this.#running -= 1;
  }

  #logFailure(reason: string): void {
    this.#failedAt = this.#context.clock.monotonic();
    const outage = this.#outage.failed();
    if (outage === undefined) return;
    this.#context.log.error("a user store is unavailable, its users cannot log in", {
      store: this.#store,
      reason,
      attempts: outage.attempts,
    });
  }

  #logRecovery(): void {
    const ended = this.#outage.succeeded();
    if (ended === undefined) return;
    this.#context.log.info("a user store is available again", {
      store: this.#store,
      attempts: ended.attempts,
    });
  }
}
