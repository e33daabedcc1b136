/** The reload state of a file or directory that is reread separately from the configuration. */
export interface ReloadState {
  /** Called after each reading. */
  reloaded(successful: boolean): void;
  /** Called when the file is no longer read, so that its failure no longer counts. */
  removed(): void;
}

/** Combines the reload states of many files: successful while none of them is invalid. */
export class ReloadStates {
  readonly #broken = new Set<ReloadState>();
  readonly #report: (successful: boolean) => void;

  constructor(report: (successful: boolean) => void) {
    this.#report = report;
  }

  /** Adds a file, which counts as valid until it is read. */
  add(): ReloadState {
    const broken = this.#broken;
    const report = (): void => this.#report(broken.size === 0);
    const state: ReloadState = {
      reloaded(successful) {
        if (successful) broken.delete(state);
        else broken.add(state);
        report();
      },
      removed() {
        if (broken.delete(state)) report();
      },
    };
    return state;
  }
}
