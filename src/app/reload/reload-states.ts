/** The state of something that is reread on its own: a file, a directory. */
export interface ReloadState {
  /** Called after each reading. */
  reloaded(successful: boolean): void;
  /** Called when it is no longer read, so that its failure no longer counts. */
  removed(): void;
}

/** Combines the last readings of many files: successful while none of them is broken. */
export class ReloadStates {
  readonly #broken = new Set<ReloadState>();
  readonly #report: (successful: boolean) => void;

  constructor(report: (successful: boolean) => void) {
    this.#report = report;
  }

  /** Adds a file, not broken yet. */
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
