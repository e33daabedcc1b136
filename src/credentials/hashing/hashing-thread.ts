import { Worker } from "node:worker_threads";
import { ERROR_CODEC } from "../../core/error-codec.ts";
import { RpcClient, NoReplyError } from "../../lib/async/thread-rpc.ts";
import { workerFile } from "../../lib/async/worker-file.ts";
import type { HashingApi } from "./hashing-worker.ts";

/** A thread that verifies one password at a time. */
export interface HashingThread {
  /** Rejects if the hash cannot be computed, or if the thread terminates or hangs before it answers. */
  verify(password: string, hash: string): Promise<boolean>;
  /** Terminates the thread and rejects a running job. */
  end(): Promise<void>;
}

/**
 * argon2 and scrypt allocate outside V8's heap, so a small young space is enough. The old space is unlimited: a thread
 * that reaches its limit can take down the whole process (seen on Node 24). The environment may hold secrets and is not
 * passed on.
 */
const OPTIONS = {
  name: "hashing",
  resourceLimits: { maxYoungGenerationSizeMb: 4 },
  execArgv: [],
  env: {},
};

/** The most expensive hash takes about 5 s on a core of its own; a thread that takes 120 s hangs. */
const LIMITS = { timeoutMs: 120_000, maxPending: () => 1 };

/**
 * Starts a thread. It keeps the process alive only while it has a job.
 *
 * @param died called once when the thread has terminated, for whatever reason.
 */
export function startHashingThread(died: (thread: HashingThread) => void): HashingThread {
  const worker = new Worker(workerFile("hashing-worker", import.meta.url), OPTIONS);
  const calls = new RpcClient<HashingApi>(worker, ERROR_CODEC, LIMITS);
  let cause: unknown;

  const thread: HashingThread = {
    async verify(password, hash) {
      worker.ref();
      try {
        return await calls.call("verify", password, hash);
      } catch (error) {
        if (error instanceof NoReplyError) void worker.terminate();
        throw error;
      } finally {
        worker.unref();
      }
    },
    async end() {
      await worker.terminate();
    },
  };

  worker.on("error", (error) => {
    cause = error;
  });
  worker.on("exit", () => {
    died(thread);
    calls.close(cause);
  });
  // Must come after the listeners: adding a message listener refs the worker again.
  worker.unref();
  return thread;
}
