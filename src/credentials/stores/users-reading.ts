import { RpcClient } from "../../core/thread-rpc.ts";
import { startWorker } from "../../lib/async/worker-file.ts";
import { ConfigError } from "../../core/config-problem.ts";
import type { FileContent } from "../../lib/files/regular-file.ts";
import type { UserRecord } from "./hash-store.ts";
import { readUsersFile } from "./users-file.ts";
import type { UsersApi } from "./users-worker.ts";

type Users = ReadonlyMap<string, UserRecord>;

/** Larger files (more than about 500 users) would block requests for more than 50 ms. */
const AT_ONCE_BYTES = 64 * 1024;

/** The result for each content, valid or not, as long as the content is referenced. */
const readings = new WeakMap<object, Promise<Users>>();

/** Reads a users file as `readUsersFile` does, large files in a separate thread. Each content is read once. */
export function readUsers({ path, bytes, identity }: FileContent): Promise<Users> {
  const known = readings.get(identity.key);
  if (known !== undefined) return known;
  const users = read(bytes, path);
  readings.set(identity.key, users);
  users.catch((error: unknown) => {
    // The thread may have failed to start; the next attempt may succeed.
    if (!(error instanceof ConfigError)) readings.delete(identity.key);
  });
  return users;
}

async function read(bytes: Buffer, file: string): Promise<Users> {
  return bytes.length > AT_ONCE_BYTES ? readUsersInThread(bytes, file) : readUsersFile(bytes, file);
}

/** A small young space is as fast and saves 50 of 300 MiB with 20,000 users. */
const MEMORY = { maxYoungGenerationSizeMb: 4 };

/** The largest file takes about 5 s of a core; a thread that takes 300 s hangs. */
const LIMITS = { timeoutMs: 300_000, maxPending: () => 1 };

/** Reads a users file as `readUsersFile` does, in a separate thread: 20,000 users take more than a second. */
async function readUsersInThread(bytes: Buffer, file: string): Promise<Users> {
  const worker = startWorker("users-worker", import.meta.url, MEMORY);
  const calls = new RpcClient<UsersApi>(worker, LIMITS);
  const failed = Promise.withResolvers<never>();
  worker.once("error", failed.reject);
  worker.once("exit", () => calls.close());
  try {
    return await Promise.race([calls.call("read", bytes, file), failed.promise]);
  } finally {
    void worker.terminate();
  }
}
