import type { Reloaded } from "../../core/status.ts";

/** The reload state of a file or directory that is reread separately from the configuration. */
export interface ReloadState {
  readonly reloaded: Reloaded;
  /** Called when the file is no longer read, so that its failure no longer counts. */
  removed(): void;
}

/** What keeps the content of some files out of force. */
interface ReloadFailure {
  /** When the last of them failed; wall clock, in milliseconds since the epoch. */
  readonly at: number;
  readonly problems: readonly string[];
}

/**
 * Combines the reload states of the configuration and of all files: successful while none of them is invalid. Metric,
 * status page and `top` all get their answer here.
 */
export class ReloadStates {
  readonly #failures = new Map<ReloadState, ReloadFailure>();
  readonly #now: () => number;
  readonly #report: Reloaded;
  /** When the last failure ended; undefined if there was none. */
  repairedAt: number | undefined;

  /** @param report called after each reading of one of them, with the problems of all. */
  constructor(now: () => number, report: Reloaded) {
    this.#now = now;
    this.#report = report;
  }

  /** The failure that lasts; undefined if everything is in force. Several threads report the same problem once. */
  get failure(): ReloadFailure | undefined {
    const all = [...this.#failures.values()];
    if (all.length === 0) return undefined;
    return {
      at: Math.max(...all.map(({ at }) => at)),
      problems: [...new Set(all.flatMap(({ problems }) => problems))],
    };
  }

  /** Adds a file, which counts as valid until it is read. */
  add(): ReloadState {
    const state: ReloadState = {
      reloaded: (problems) => {
        if (problems.length > 0) this.#failures.set(state, { at: this.#now(), problems });
        else this.#repaired(state);
        this.#report(this.failure?.problems ?? []);
      },
      removed: () => {
        if (this.#repaired(state)) this.#report(this.failure?.problems ?? []);
      },
    };
    return state;
  }

  #repaired(state: ReloadState): boolean {
    const failed = this.#failures.delete(state);
    if (failed && this.#failures.size === 0) this.repairedAt = this.#now();
    return failed;
  }
}
