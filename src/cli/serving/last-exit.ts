import { setTimeout as after } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import { withTimeout } from "../../lib/async/with-timeout.ts";

/**
 * Node's names of work in the thread pool that lasts until a disk or a name server responds. Node 26 does not report
 * reads of a file that is already open.
 */
const POOL_WORK = /^(?:FSReq|GetAddrInfo|GetNameInfo)/;
const CHECK_EVERY_MS = 10;

/**
 * Detects whether `process.exit` would hang. It waits for all threads and for pending work in libuv's pool: with a
 * thread in a system call, or a file on storage that does not respond, it waits forever (tried on Node 26).
 */
export class LastExit {
  readonly #threads = new Set<Worker>();

  constructor() {
    process.on("worker", (worker: Worker) => {
      this.#threads.add(worker);
      worker.once("exit", () => this.#threads.delete(worker));
    });
  }

  /**
   * Terminates all threads. Resolves once nothing blocks an exit; after `limitMs`, kills the process with SIGKILL.
   */
  async clear(limitMs: number): Promise<void> {
    const work = this.#end();
    if (!(await withTimeout(work, limitMs, false))) process.kill(process.pid, "SIGKILL");
  }

  async #end(): Promise<boolean> {
    await Promise.all([...this.#threads].map((thread) => thread.terminate()));
    while (process.getActiveResourcesInfo().some((name) => POOL_WORK.test(name))) {
      await after(CHECK_EVERY_MS);
    }
    return true;
  }
}
