import type { ConfigProblem } from "./config-problem.ts";

/**
 * Called after each later reading of the configuration or of a file that is read separately from it, with the problems
 * that keep the new content out of force; none if it is in force.
 */
export type Reloaded = (problems: readonly string[]) => void;

/** The result of a reload. */
export type ReloadResult =
  | {
      readonly successful: true;
      /** The changed keys; no values, which may be secrets. */
      readonly changed: readonly string[];
      /** The changed files: a renewed certificate changes no key. */
      readonly files: readonly string[];
      /** The keys changed since the process started that take effect only after a restart. */
      readonly atRestart: readonly string[];
    }
  | { readonly successful: false; readonly problems: readonly ConfigProblem[] };
