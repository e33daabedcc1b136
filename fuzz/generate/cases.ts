import fc from "fast-check";
import type { Case } from "../wire/converse.ts";
import { cuts, splices } from "./message.ts";

/** One in this many cases waits for the proxy's own time limits, which takes seconds. */
const PATIENT_EVERY = 1_000;

/**
 * Generates one to three requests on one connection, all at once or one after the other, in a few writes. In one of five
 * cases, a few bytes are changed anywhere.
 */
export function casesOf(message: fc.Arbitrary<string>): fc.Arbitrary<Case> {
  return fc
    .record({
      texts: fc.array(message, { minLength: 1, maxLength: 3, size: "small" }),
      inTurns: fc.boolean(),
      splice: fc.oneof({ arbitrary: fc.constant(unchanged), weight: 4 }, splices),
      cut: cuts,
      patience: fc.nat(PATIENT_EVERY),
    })
    .map(({ texts, inTurns, splice, cut, patience }) => {
      const rounds = inTurns ? texts : [texts.join("")];
      const [first = "", ...others] = rounds;
      return { rounds: [splice(first), ...others].map(cut), patient: patience === PATIENT_EVERY };
    });
}

const unchanged = (text: string): string => text;
