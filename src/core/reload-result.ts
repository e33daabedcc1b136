import type { ConfigProblem } from "./config-problem.ts";

/** What became of reading the configuration again. */
export type ReloadResult =
  | {
      readonly successful: true;
      /** Keys, never values: these may be secrets. */
      readonly changed: readonly string[];
      /** Files with another content: a renewed certificate changes no key. */
      readonly files: readonly string[];
      /** The keys that are others than at the start of the process and need a restart, since whenever. */
      readonly atRestart: readonly string[];
    }
  | { readonly successful: false; readonly problems: readonly ConfigProblem[] };
