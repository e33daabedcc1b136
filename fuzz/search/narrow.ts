import type { ClassName } from "../classes.ts";
import { type Fault, type FaultKind, MEASURED_KINDS } from "../judge/fault.ts";
import type { FuzzClass } from "./fuzz-class.ts";
import type { Suspicion } from "./suspicion.ts";

/** One fault with the smallest case that shows it. */
export interface Finding {
  readonly name: ClassName;
  readonly seed: number;
  /** The value for `--path`. */
  readonly path: string;
  readonly kind: FaultKind;
  readonly faults: readonly Fault[];
  /** The case; if it did not repeat alone, the last of several concurrent ones. */
  readonly shown: string;
  readonly repeated: boolean;
}

/** How often a case is tried alone, since it may depend on timing. */
export const TRIES = 3;

/**
 * Finds the case that caused a suspicion by playing the suspects alone, and makes it smaller.
 * @param shrinkingMs how long to search for a smaller case.
 * @returns undefined if only timing was wrong, and that did not repeat.
 */
export async function narrowed(
  { faults, suspects }: Suspicion,
  classes: ReadonlyMap<ClassName, FuzzClass>,
  shrinkingMs: number,
): Promise<Finding | undefined> {
  const kinds = new Set(faults.map(({ kind }) => kind));
  const counts = ({ kind }: Fault): boolean => kinds.has(kind);
  const tries = suspects.length === 1 ? TRIES : 1;
  for (const { name, seed, index } of suspects) {
    for (let turn = 0; turn < tries; turn += 1) {
      const each = classes.get(name);
      const shrunk = await each?.repeat(seed, String(index), { counts, shrinkingMs });
      const kind = shrunk?.faults[0]?.kind;
      if (shrunk === undefined || kind === undefined) continue;
      return { name, seed, kind, repeated: true, ...shrunk };
    }
  }
  const [first] = suspects;
  if (first === undefined) throw new Error("a suspicion without suspects");
  const { name, seed, index, drawn } = first;
  const lasting = faults.filter((each) => !MEASURED_KINDS.has(each.kind));
  if (lasting.length === 0) return undefined;
  const kind = lasting[0]?.kind ?? "trouble";
  return { name, seed, path: String(index), kind, faults, shown: drawn.shown, repeated: false };
}
