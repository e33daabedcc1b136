import { setTimeout as sleep } from "node:timers/promises";
import { X509Certificate } from "node:crypto";
import { withTimeout } from "../../../lib/async/with-timeout.ts";
import { HashingQueue, queueFull } from "../../hashing/hashing-queue.ts";
import type { AttemptOrigin } from "../../throttle/login-throttle.ts";
import { Outage } from "../../../lib/outage.ts";
import { LATE, RemoteError, remoteFailure } from "../../../lib/text/error-code.ts";
import type { FileReader, StoreContext, UserStore } from "../user-store.ts";
import type { Log } from "../../../core/log.ts";
import { ConfigError } from "../../../core/config-problem.ts";

const REMEMBERED = 32;
/** The assumed number of users of a store that cannot count them. */
const ASSUMED_USERS = 1_000;

/**
 * The store's recent response times for known names. An unknown name must take as long. The times are measured at the
 * store, since only the store does the work of verifying a password.
 */
export class RecentTimes {
  readonly #ms: number[] = [];
  #at = 0;

  record(ms: number): void {
    this.#ms[this.#at] = ms;
    this.#at = (this.#at + 1) % REMEMBERED;
  }

  /** Each waits for one of the times, picked at random, or not at all if there is none yet. */
  readonly decoys: UserStore["decoys"] = {
    count: () => ASSUMED_USERS,
    verify: async () => {
      const ms = this.#ms[Math.floor(Math.random() * this.#ms.length)];
      if (ms !== undefined) await sleep(ms);
    },
  };
}

const LONGEST_BYTES = 1024;
const CONTROL = /\p{Cc}/u;
/** A token with more groups would be too large for any server to accept. */
const MOST_GROUPS = 1_000;

/**
 * Reports whether a user of a remote store can have this name. Stores are not asked about other names: some servers
 * reject control characters and lone surrogates, and others misread them.
 */
export function isAskable(username: string): boolean {
  return (
    username !== "" &&
    username.length <= LONGEST_BYTES &&
    Buffer.byteLength(username) <= LONGEST_BYTES &&
    username.isWellFormed() &&
    !CONTROL.test(username)
  );
}

/**
 * Returns the groups that can be sent to a backend, without duplicates, and logs how many are left out. A backend
 * receives them in one comma-separated header.
 */
export function sendableGroups(
  groups: readonly unknown[],
  user: string,
  store: string,
  log: Log,
): readonly string[] {
  const sendable = new Set<string>();
  for (const group of groups) {
    const fits = typeof group === "string" && group !== "" && !/,/.test(group);
    if (fits && group.isWellFormed() && !CONTROL.test(group) && sendable.size < MOST_GROUPS) {
      sendable.add(group);
    }
  }
  const leftOut = new Set(groups).size - sendable.size;
  if (leftOut > 0) {
    log.warn("groups of a user were left out: they cannot be sent", {
      store,
      user,
      groups: leftOut,
    });
  }
  return [...sendable];
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Returns the authorities that may issue the store's certificate.
 * @param caFile without it, the result is undefined, and Node's authorities apply.
 * @returns PEM.
 * @throws ConfigError if the file contains no certificate, or one that cannot be read.
 */
export function authoritiesIn(
  caFile: string | undefined,
  contentOf: FileReader,
): string | undefined {
  if (caFile === undefined) return undefined;
  const pem = contentOf(caFile).bytes.toString("utf8");
  const certificates = pem.match(CERTIFICATE) ?? [];
  try {
    for (const certificate of certificates) new X509Certificate(certificate);
  } catch {
    throw new ConfigError([{ file: caFile, message: "holds a certificate that cannot be read" }]);
  }
  if (certificates.length > 0) return pem;
  throw new ConfigError([{ file: caFile, message: "holds no certificate" }]);
}

/**
 * Authorities that a reload may replace. If the file is invalid at a reload, the old ones stay in use.
 *
 * @param store its name in the log.
 * @throws ConfigError if the file cannot be used.
 */
export function openTrust(store: string, caFile: string | undefined, context: StoreContext) {
  let authorities = authoritiesIn(caFile, context.contentOf);
  return {
    authorities: (): string | undefined => authorities,
    /** Applies a reload, and logs an error if the file is invalid. @returns whether the authorities have changed. */
    follow(contentOf: FileReader): boolean {
      const before = authorities;
      try {
        authorities = authoritiesIn(caFile, contentOf);
      } catch (error) {
        context.log.error("the authorities of a user store cannot be used, the old ones stay", {
          store,
          reason: remoteFailure(error),
        });
      }
      return authorities !== before;
    },
  };
}

/** Returns why a question has no answer; undefined if it has one. Never rejects. */
export function failureOf(answer: Promise<unknown>): Promise<string | undefined> {
  return answer.then(() => undefined, remoteFailure);
}

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
