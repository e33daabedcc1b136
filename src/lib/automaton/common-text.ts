import { type Automaton, DEAD, START } from "./automaton.ts";
import { ExpressionError } from "./expression.ts";

/** Whether a text is wanted, given which of the automata match it, in the order of the automata. */
type Wanted = (matching: readonly boolean[]) => boolean;

interface SearchOptions {
  readonly wanted: Wanted;
  /** The indexes of the automata that must match. The search drops a text that one of them can no longer match. */
  readonly needed: readonly number[];
  /** The text that each automaton reads first; default: empty. */
  readonly after?: readonly string[];
}

/** The maximum number of combinations of states that a search examines. */
const MOST_COMBINATIONS = 20_000;

/** The characters to try first, in this order, so that a found text looks like a path. */
const PREFERRED = "/abcdefghijklmnopqrstuvwxyz0123456789-_.ABCDEFGHIJKLMNOPQRSTUVWXYZ";

const FIRST_PRINTABLE = 0x21;
const PRINTABLE = 0x7f - FIRST_PRINTABLE;

/** A combination of one state of each automaton, and how the search reached it. */
interface Reached {
  readonly states: readonly number[];
  readonly from: Reached | undefined;
  readonly character: number;
}

/**
 * Returns the shortest wanted text, or undefined if there is none. Walks through all automata in parallel.
 *
 * @throws ExpressionError if the search examines too many combinations of states.
 */
export function commonText(
  automata: readonly Automaton[],
  { wanted, needed, after = [] }: SearchOptions,
): string | undefined {
  const characters = distinctCharacters(automata);
  const states = automata.map((automaton, index) => automaton.walk(START, after[index] ?? ""));
  const queue: Reached[] = [{ states, from: undefined, character: 0 }];
  const seen = new Set([states.join()]);
  for (const reached of queue) {
    const matching = automata.map((automaton, at) => automaton.accepts(reached.states[at] ?? DEAD));
    if (needed.every((at) => matching[at] === true) && wanted(matching)) return textTo(reached);
    for (const character of characters) {
      const next = automata.map((each, at) => each.next(reached.states[at] ?? DEAD, character));
      const key = next.join();
      if (seen.has(key) || needed.some((at) => next[at] === DEAD)) continue;
      if (seen.size === MOST_COMBINATIONS) throw new ExpressionError("cannot be compared");
      seen.add(key);
      queue.push({ states: next, from: reached, character });
    }
  }
  return undefined;
}

/** Returns one character of each group of characters that no automaton distinguishes. */
function distinctCharacters(automata: readonly Automaton[]): number[] {
  const groups = automata.map((automaton) => automaton.groups);
  const preferred = Array.from(PREFERRED, (character) => character.charCodeAt(0));
  const seen = new Set<string>();
  const printable = Array.from({ length: PRINTABLE }, (_, index) => FIRST_PRINTABLE + index);
  return [...preferred, ...printable].filter((character) => {
    const key = groups.map((group) => group[character]).join();
    const isNew = !seen.has(key);
    seen.add(key);
    return isNew;
  });
}

function textTo(reached: Reached): string {
  let text = "";
  for (let at = reached; at.from !== undefined; at = at.from) {
    text = String.fromCharCode(at.character) + text;
  }
  return text;
}
