/** The thread that computes password hashes, one after the other. */
import { constants, getPriority, setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { expose } from "../../core/thread-rpc.ts";
import { readPasswordHash } from "./password-hash.ts";

/** The lowest scheduling priority of the system. */
const NICEST = 19;

const API = {
  /** Throws if the hash cannot be computed. The libraries' messages name parameters, never values. */
  verify(password: string, hash: string): boolean {
    // Accepts weak hashes: the code that read the users has already decided which hashes are strong enough.
    const read = readPasswordHash(hash, { weak: true });
    if ("refused" in read) throw new Error(read.refused);
    return read.matches(password);
  },
};

export type HashingApi = typeof API;

letOthersGoFirst();
if (parentPort !== null) expose(parentPort, API);

/** Lowers the priority, so that proxied requests take precedence over logins on a shared core. */
function letOthersGoFirst(): void {
  // On Linux this sets the priority of one thread (setpriority(2), "C library/kernel differences"), elsewhere that of
  // the process.
  if (process.platform !== "linux") return;
  try {
    setPriority(0, Math.min(NICEST, getPriority(0) + constants.priority.PRIORITY_BELOW_NORMAL));
  } catch {
    // A sandbox may forbid it. Logins work nonetheless.
  }
}
