import { GateError } from "../core/errors.ts";
import type { HashingJob } from "./hashing-job.ts";
import { HashingQueue } from "./hashing-queue.ts";
import { startHashingThread } from "./hashing-thread.ts";
import type { HashingThread } from "./hashing-thread.ts";
import type { PasswordVerifier } from "./password-verifier.ts";

export interface HashingPoolOptions {
  /** How many passwords are verified at the same time, each on its own thread. */
  readonly concurrency: number;
  /** How many more may wait for a thread. */
  readonly queue: number;
}

/**
 * Threads of our own that verify passwords. They are not libuv's: 64 hashes in flight there made a token's verification
 * wait 717 ms instead of 0.2 ms (measured), and file and DNS look-ups share them.
 */
export interface HashingPool extends PasswordVerifier {
  /** Starts one thread now, so that the first login does not wait for it; others come on demand, at 9 MB each. */
  start(): void;
  /** How many verifications wait for a thread. */
  readonly pending: number;
  /** Ends all threads and rejects what waits or runs; nothing can be verified afterwards. */
  close(): Promise<void>;
}

interface Waiting extends HashingJob {
  readonly done: PromiseWithResolvers<boolean>;
}

export function createHashingPool({ concurrency, queue }: HashingPoolOptions): HashingPool {
  const threads = new Set<HashingThread>();
  const idle: HashingThread[] = [];
  const waiting = new HashingQueue<Waiting>(queue);
  let closed = false;

  function startThread(): void {
    const thread = startHashingThread(replace);
    threads.add(thread);
    idle.push(thread);
  }

  /** A dead thread gets a successor when there is a job for it: one that dies at once is not started in a loop. */
  function replace(dead: HashingThread): void {
    threads.delete(dead);
    const index = idle.indexOf(dead);
    if (index >= 0) idle.splice(index, 1);
    assign();
  }

  function freeThread(): HashingThread | undefined {
    if (idle.length === 0 && threads.size < concurrency) startThread();
    return idle.pop();
  }

  function assign(): void {
    if (closed) return;
    while (waiting.length > 0) {
      const thread = freeThread();
      if (thread === undefined) return;
      const job = waiting.next();
      if (job !== undefined) void run(thread, job);
    }
  }

  async function run(thread: HashingThread, { password, hash, done }: Waiting): Promise<void> {
    try {
      done.resolve(await thread.run({ password, hash }));
    } catch (cause) {
      done.reject(new GateError("internal", { reason: "hashing", cause }));
    }
    if (threads.has(thread)) idle.push(thread);
    assign();
  }

  return {
    start() {
      if (!closed && threads.size === 0) startThread();
    },

    async verify(password, hash, origin) {
      if (closed) throw new GateError("internal", { reason: "hashing" });
      const job = { password, hash, done: Promise.withResolvers<boolean>() };
      const thread = freeThread();
      if (thread === undefined) waiting.add(job, origin)?.done.reject(queueFull());
      else void run(thread, job);
      return job.done.promise;
    },

    get pending() {
      return waiting.length;
    },

    async close() {
      closed = true;
      for (let job = waiting.next(); job !== undefined; job = waiting.next()) {
        job.done.reject(new GateError("internal", { reason: "hashing" }));
      }
      await Promise.all([...threads].map((thread) => thread.end()));
    },
  };
}

function queueFull(): GateError {
  return new GateError("login_queue_full", { reason: "queue_full", retryAfter: 1 });
}
