import type { ClassName } from "../classes.ts";
import type { Fault } from "../judge/fault.ts";
import type { Drawn } from "./fuzz-class.ts";

/** Identifies a case. */
export interface Origin {
  readonly name: ClassName;
  readonly seed: number;
  readonly index: number;
  readonly drawn: Drawn;
}

/** Something that went wrong, and the cases that may have caused it, most likely first. */
export interface Suspicion {
  readonly faults: readonly Fault[];
  readonly suspects: readonly Origin[];
}
