/**
 * Runs a task some time after it was requested, and never concurrently with itself.
 *
 * @param everyMs the time from the first request, or from the end of a run, to the next run.
 * @param task resolves to whether there is more to do. Must not reject.
 * @returns a function that requests a run. It has no effect during a run: the task itself returns whether there is more
 * to do.
 */
export function pacedTask(everyMs: number, task: () => Promise<boolean>): () => void {
  let timer: NodeJS.Timeout | undefined;
  let running = false;

  function request(): void {
    if (running) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      void run();
    }, everyMs).unref();
  }

  async function run(): Promise<void> {
    running = true;
    const goesOn = await task();
    running = false;
    if (goesOn) request();
  }

  return request;
}
