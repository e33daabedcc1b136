import fc from "fast-check";
import type { Fault } from "../judge/fault.ts";
import type { Played } from "./stage.ts";

/** A case that the search has drawn. */
export interface Drawn {
  play(): Promise<Played>;
  /** The case, for a person. */
  readonly shown: string;
}

/** The smallest case that still shows a finding. */
interface Shrunk {
  /** What `--path` takes to repeat it. */
  readonly path: string;
  readonly faults: readonly Fault[];
  /** The case, for a person. */
  readonly shown: string;
}

/** One family of generated inputs, whatever they are. */
export interface FuzzClass {
  /** The cases of a batch: the same for the same seed. */
  batch(seed: number, size: number): readonly Drawn[];
  /**
   * Plays the case at a path of a batch alone, and looks for a smaller one that is wrong in the same way.
   * @returns undefined when nothing is wrong with it.
   */
  repeat(seed: number, path: string, wanted: Wanted): Promise<Shrunk | undefined>;
}

/** What a case is repeated for. */
interface Wanted {
  readonly counts: (fault: Fault) => boolean;
  /** How long a smaller case is looked for, in milliseconds; not at all when it is 0. */
  readonly shrinkingMs: number;
}

export interface Trial<T> {
  readonly play: (value: T) => Promise<Played>;
  /** Plays it with nobody else there. */
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
      // Only now, since the limit counts for the first run, too, and a case that hangs takes long.
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
