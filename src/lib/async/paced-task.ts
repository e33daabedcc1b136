/** Runs a task some time after it was asked for, and never twice at once. */
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

  /** Asks for a run. During a run it has no effect: the task itself says whether there is more to do. */
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
