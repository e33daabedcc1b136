import { Worker } from "node:worker_threads";
import type { HashingAnswer, HashingJob } from "./hashing-job.ts";

/** One thread that verifies one password at a time. */
export interface HashingThread {
  /** Rejects when the hash cannot be computed or the thread dies over it. */
  run(job: HashingJob): Promise<boolean>;
  /** Ends the thread; a job that is running is rejected. */
  end(): Promise<void>;
}

/** TypeScript in `src`; in `dist` an entry of the bundle, which lies beside the chunk that this is in. */
const FILE = new URL(
  import.meta.url.endsWith(".ts") ? "./hashing-worker.ts" : "./hashing-worker.js",
  import.meta.url,
);

/**
 * The memory of argon2 and scrypt lies outside V8's heap, so a small young space is enough. The old space has no limit: a
 * thread that reaches it can take the whole process down (seen on Node 24). The environment, which may hold secrets, is
 * not passed on.
 */
const OPTIONS = {
  name: "hashing",
  resourceLimits: { maxYoungGenerationSizeMb: 4 },
  execArgv: [],
  env: {},
};

/**
 * Starts a thread. It keeps the program running only while it has a job.
 *
 * @param died called once when the thread has ended, for whatever reason.
 */
export function startHashingThread(died: (thread: HashingThread) => void): HashingThread {
  const worker = new Worker(FILE, OPTIONS);
  let current: PromiseWithResolvers<boolean> | undefined;
  let cause: unknown;

  const thread: HashingThread = {
    run(job) {
      const running = Promise.withResolvers<boolean>();
      current = running;
      worker.ref();
      worker.postMessage(job);
      return running.promise;
    },
    async end() {
      await worker.terminate();
    },
  };

  worker.on("message", (answer: HashingAnswer) => {
    const finished = current;
    current = undefined;
    worker.unref();
    if ("failed" in answer) finished?.reject(new Error(answer.failed));
    else finished?.resolve(answer.matches);
  });
  worker.on("error", (error) => {
    cause = error;
  });
  worker.on("exit", () => {
    died(thread);
    current?.reject(new Error("the hashing thread ended", { cause }));
  });
  // After the listeners: one for messages keeps the program running by itself.
  worker.unref();
  return thread;
}
