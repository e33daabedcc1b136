/** One of the things that are read again by themselves: a file, a directory. */
export interface ReloadState {
  /** Told whenever it has been read again. */
  reloaded(successful: boolean): void;
  /** Told when it is not read any more, so that it is nobody's trouble. */
  gone(): void;
}

/** What many files say of their last reading, as one: it is successful while none of them is broken. */
export class ReloadStates {
  readonly #broken = new Set<ReloadState>();
  readonly #tell: (successful: boolean) => void;

  constructor(tell: (successful: boolean) => void) {
    this.#tell = tell;
  }

  /** One more, not broken yet. */
  add(): ReloadState {
    const broken = this.#broken;
    const tell = (): void => this.#tell(broken.size === 0);
    const state: ReloadState = {
      reloaded(successful) {
        if (successful) broken.delete(state);
        else broken.add(state);
        tell();
      },
      gone() {
        if (broken.delete(state)) tell();
      },
    };
    return state;
  }
}
