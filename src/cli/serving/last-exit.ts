import { setTimeout as after } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import { withTimeout } from "../../lib/async/with-timeout.ts";

/**
 * Work in the thread pool that may take as long as a disk or a name server does, by Node's names. Reading a file that
 * is already open is not included on Node 26.
 */
const POOL_WORK = /^(?:FSReq|GetAddrInfo|GetNameInfo)/;
const CHECK_EVERY_MS = 10;

/**
 * Detects whether `process.exit` would return. It waits for all threads and for pending work in libuv's pool: with a
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
   * Terminates all threads. Resolves when nothing blocks an exit; otherwise kills the process with SIGKILL after
   * `limitMs`.
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
