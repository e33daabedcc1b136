import fc from "fast-check";
import type { Fault } from "../judge/fault.ts";
import type { Played } from "./stage.ts";

/** A case that the search has drawn. */
export interface Drawn {
  play(): Promise<Played>;
  /** The case, as readable text. */
  readonly shown: string;
}

/** The smallest case that still shows a finding. */
interface Shrunk {
  /** What `--path` takes to repeat it. */
  readonly path: string;
  readonly faults: readonly Fault[];
  /** The case, as readable text. */
  readonly shown: string;
}

/** One family of generated inputs. */
export interface FuzzClass {
  /** Returns the cases of a batch, which are the same for the same seed. */
  batch(seed: number, size: number): readonly Drawn[];
  /**
   * Plays the case at a path of a batch alone, and searches for a smaller one with the same fault.
   * @returns undefined if nothing is wrong with it.
   */
  repeat(seed: number, path: string, wanted: Wanted): Promise<Shrunk | undefined>;
}

/** What to look for when a case is repeated. */
interface Wanted {
  readonly counts: (fault: Fault) => boolean;
  /** How long to search for a smaller case, in milliseconds; 0 to not search. */
  readonly shrinkingMs: number;
}

export interface Trial<T> {
  readonly play: (value: T) => Promise<Played>;
  /** Plays it without any other case at the same time. */
  readonly playAlone: (value: T) => Promise<readonly Fault[]>;
}

export function fuzzClass<T>(values: fc.Arbitrary<T>, trial: Trial<T>): FuzzClass {
  return {
    batch(seed, size) {
      const drawn = fc.sample(fc.tuple(values), { seed, numRuns: size });
      return drawn.map(([value]) => ({
        play: () => trial.play(value),
        get shown() {
          return shown(value);
        },
      }));
    },
    async repeat(seed, path, { counts, shrinkingMs }) {
      let last: Shrunk | undefined;
      const property = fc.asyncProperty(values, async (value) => {
        const faults = (await trial.playAlone(value)).filter(counts);
        if (faults.length === 0) return;
        last = { faults, shown: shown(value), path };
        throw new Error("found");
      });
      const one = { seed, path, numRuns: 1 };
      await fc.check(property, { ...one, endOnFailure: true });
      if (last === undefined || shrinkingMs === 0) return last;
      // A separate run, since the time limit would also apply to the first run, and a case that hangs takes long.
      const limit = { interruptAfterTimeLimit: shrinkingMs };
      const { counterexamplePath } = await fc.check(property, { ...one, ...limit });
      return { ...last, path: counterexamplePath ?? path };
    },
  };
}

function shown(value: unknown): string {
  const text = JSON.stringify(value).replaceAll(/[^ -~]/g, escaped);
  return text.length > 4_000 ? `${text.slice(0, 4_000)}… (${text.length} characters)` : text;
}

function escaped(letter: string): string {
  return `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
