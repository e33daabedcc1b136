/** Runs a task some time after it was requested, and never concurrently with itself. */
export class PacedTask {
  readonly #everyMs: number;
  readonly #task: () => Promise<boolean>;
  #timer: NodeJS.Timeout | undefined;
  #running = false;

  /**
   * @param everyMs the time from the first request, or from the end of a run, to the next run.
   * @param task resolves to whether there is more to do. Must not reject.
   */
  constructor(everyMs: number, task: () => Promise<boolean>) {
    this.#everyMs = everyMs;
    this.#task = task;
  }

  /** Requests a run. Has no effect during a run: the task itself returns whether there is more to do. */
  request(): void {
    if (this.#timer !== undefined || this.#running) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#run();
    }, this.#everyMs).unref();
  }

  async #run(): Promise<void> {
    this.#running = true;
    const goesOn = await this.#task();
    this.#running = false;
    if (goesOn) this.request();
  }
}
