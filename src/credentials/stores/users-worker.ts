/** The thread that reads one large users file. */
import { parentPort } from "node:worker_threads";
import { expose } from "../../core/thread-rpc.ts";
import type { UserRecord } from "./hash-store.ts";
import { readUsersFile } from "./users-file.ts";

const API = {
  read: (bytes: Uint8Array, file: string): ReadonlyMap<string, UserRecord> =>
    readUsersFile(Buffer.from(bytes.buffer), file),
};

export type UsersApi = typeof API;

if (parentPort !== null) expose(parentPort, API);
