import type { Configuration } from "../../config/configuration.ts";
import { GateError } from "../../core/request/errors.ts";
import { NoReplyError, RpcClient } from "../../core/thread-rpc.ts";
import { startWorker } from "../../lib/async/worker-file.ts";
import type { AttemptOrigin } from "../throttle/login-throttle.ts";
import { HashingQueue, queueFull } from "./hashing-queue.ts";
import type { HashingApi } from "./hashing-worker.ts";

/** Verifies passwords away from the thread that serves requests. */
export interface PasswordVerifier {
  /**
   * @param hash a string that `readPasswordHash` accepts.
   * @param origin decides the order in the queue, and which job is displaced when it is full.
   * @throws GateError `login_queue_full` if the queue is full, `internal` if the hash could not be computed.
   */
  verify(password: string, hash: string, origin: AttemptOrigin): Promise<boolean>;
}

type HashingLimits = Configuration["login"]["hashing"];

interface Waiting {
  readonly password: string;
  readonly hash: string;
  readonly done: PromiseWithResolvers<boolean>;
}

/**
 * Dedicated threads that verify passwords. Each is started when it is first needed, and takes 9 MB. libuv's thread pool
 * is unsuitable: 64 concurrent hashes there delayed the verification of a token from 0.2 ms to 717 ms (measured), and
 * file access and DNS lookups share that pool.
 */
export class HashingPool implements PasswordVerifier {
  readonly #threads = new Set<HashingThread>();
  readonly #idle: HashingThread[] = [];
  readonly #waiting: HashingQueue<Waiting>;
  #concurrency: number;
  #closed = false;

  constructor({ concurrency, queue }: HashingLimits) {
    this.#concurrency = concurrency;
    this.#waiting = new HashingQueue<Waiting>(queue);
  }

  async verify(password: string, hash: string, origin: AttemptOrigin): Promise<boolean> {
    if (this.#closed) throw new GateError("internal", { reason: "hashing" });
    const job = { password, hash, done: Promise.withResolvers<boolean>() };
    const thread = this.#freeThread();
    if (thread === undefined) this.#waiting.add(job, origin)?.done.reject(queueFull());
    else void this.#run(thread, job);
    return job.done.promise;
  }

  /** The number of verifications that wait for a thread. */
  get pending(): number {
    return this.#waiting.length;
  }

  /** Applies new limits. Waiting and running verifications continue. */
  change({ concurrency, queue }: HashingLimits): void {
    this.#concurrency = concurrency;
    this.#waiting.change(queue);
    this.#endSurplus();
    this.#assign();
  }

  /** Terminates all threads and rejects waiting and running verifications. Later calls of `verify` are rejected. */
  async close(): Promise<void> {
    this.#closed = true;
    for (let job = this.#waiting.next(); job !== undefined; job = this.#waiting.next()) {
      job.done.reject(new GateError("internal", { reason: "hashing" }));
    }
    await Promise.all([...this.#threads].map((thread) => thread.end()));
  }

  /**
   * Replaces a dead thread only when there is a job for it, so that a thread that dies at once is not restarted in a
   * loop.
   */
  #replace(dead: HashingThread): void {
    this.#threads.delete(dead);
    const index = this.#idle.indexOf(dead);
    if (index >= 0) this.#idle.splice(index, 1);
    this.#assign();
  }

  #freeThread(): HashingThread | undefined {
    const idle = this.#idle.pop();
    if (idle !== undefined || this.#threads.size >= this.#concurrency) return idle;
    const thread = new HashingThread((dead) => this.#replace(dead));
    this.#threads.add(thread);
    return thread;
  }

  #assign(): void {
    if (this.#closed) return;
    while (this.#waiting.length > 0) {
      const thread = this.#freeThread();
      if (thread === undefined) return;
      const job = this.#waiting.next();
      if (job !== undefined) void this.#run(thread, job);
    }
  }

  async #run(thread: HashingThread, { password, hash, done }: Waiting): Promise<void> {
    try {
      done.resolve(await thread.verify(password, hash));
    } catch (cause) {
      done.reject(new GateError("internal", { reason: "hashing", cause }));
    }
    if (this.#threads.has(thread)) this.#idle.push(thread);
    this.#endSurplus();
    this.#assign();
  }

  #endSurplus(): void {
    while (this.#threads.size > this.#concurrency) {
      const thread = this.#idle.pop();
      if (thread === undefined) return;
      this.#threads.delete(thread);
      void thread.end();
    }
  }
}

/**
 * argon2 and scrypt allocate outside V8's heap, so a small young space is enough. The old space is unlimited: a thread
 * that reaches its limit can take down the whole process (seen on Node 24).
 */
const MEMORY = { maxYoungGenerationSizeMb: 4 };

/** The most expensive hash takes about 5 s on a core of its own; a thread that takes 120 s hangs. */
const LIMITS = { timeoutMs: 120_000, maxPending: () => 1 };

/** A thread that verifies one password at a time. It keeps the process alive only while it has a job. */
class HashingThread {
  readonly #worker = startWorker("hashing-worker", import.meta.url, MEMORY);
  readonly #calls = new RpcClient<HashingApi>(this.#worker, LIMITS);

  /** @param died called once when the thread has terminated, for whatever reason. */
  constructor(died: (thread: HashingThread) => void) {
    let cause: unknown;
    this.#worker.on("error", (error) => {
      cause = error;
    });
    this.#worker.on("exit", () => {
      died(this);
      this.#calls.close(cause);
    });
    // Must come after the listeners: adding a message listener refs the worker again.
    this.#worker.unref();
  }

  /** Rejects if the hash cannot be computed, or if the thread terminates or hangs before it answers. */
  async verify(password: string, hash: string): Promise<boolean> {
    this.#worker.ref();
    try {
      return await this.#calls.call("verify", password, hash);
    } catch (error) {
      if (error instanceof NoReplyError) void this.#worker.terminate();
      throw error;
    } finally {
      this.#worker.unref();
    }
  }

  /** Terminates the thread and rejects a running job. */
  end(): Promise<unknown> {
    return this.#worker.terminate();
  }
}
