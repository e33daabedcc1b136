import { Worker } from "node:worker_threads";
import { ERROR_CODEC } from "../../core/error-codec.ts";
import { RpcClient } from "../../lib/async/thread-rpc.ts";
import { workerFile } from "../../lib/async/worker-file.ts";
import type { UserRecord } from "./hash-store.ts";
import type { UsersApi } from "./users-worker.ts";

/**
 * A small young space is as fast and saves 50 of 300 MiB with 20,000 users. The environment may contain secrets and is
 * not passed on.
 */
const OPTIONS = {
  name: "users",
  resourceLimits: { maxYoungGenerationSizeMb: 4 },
  execArgv: [],
  env: {},
};

/** The largest file takes about 5 s of a core; a thread that takes 300 s hangs. */
const LIMITS = { timeoutMs: 300_000, maxPending: () => 1 };

/** Reads a users file as `readUsersFile` does, in a separate thread: 20,000 users take more than a second. */
export async function readUsersInThread(
  bytes: Buffer,
  file: string,
): Promise<ReadonlyMap<string, UserRecord>> {
  const worker = new Worker(workerFile("users-worker", import.meta.url), OPTIONS);
  const calls = new RpcClient<UsersApi>(worker, ERROR_CODEC, LIMITS);
  const failed = Promise.withResolvers<never>();
  worker.once("error", failed.reject);
  worker.once("exit", () => calls.close());
  try {
    return await Promise.race([calls.call("read", bytes, file), failed.promise]);
  } finally {
    void worker.terminate();
  }
}
