/** The thread that computes password hashes, one after the other. */
import { constants, getPriority, setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import type { HashingAnswer, HashingJob } from "./hashing-job.ts";
import { readPasswordHash } from "./password-hash.ts";

/** What the system takes for the least urgent. */
const NICEST = 19;

letOthersGoFirst();

parentPort?.on("message", (job: HashingJob) => {
  parentPort?.postMessage(answerTo(job));
});

function answerTo({ password, hash }: HashingJob): HashingAnswer {
  const read = readPasswordHash(hash);
  if ("refused" in read) return { failed: read.refused };
  try {
    return { matches: read.matches(password) };
  } catch (error) {
    // Memory that cannot be had, say. The libraries' messages name parameters, never what they were given.
    return { failed: error instanceof Error ? error.message : "unknown" };
  }
}

/** Proxied requests come before logins where they share a core. */
function letOthersGoFirst(): void {
  // On Linux this is the priority of one thread (setpriority(2), "C library/kernel differences"), elsewhere that of all.
  if (process.platform !== "linux") return;
  try {
    setPriority(0, Math.min(NICEST, getPriority(0) + constants.priority.PRIORITY_BELOW_NORMAL));
  } catch {
    // A sandbox that forbids it: logins work all the same.
  }
}
