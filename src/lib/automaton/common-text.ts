import { type Automaton, DEAD, START } from "./automaton.ts";
import { ExpressionError } from "./expression.ts";

/** Whether a text is searched for, by which of the automata, in their order, match it. */
type Wanted = (matching: readonly boolean[]) => boolean;

interface SearchOptions {
  readonly wanted: Wanted;
  /** The automata that a text must match, by index: texts that they cannot match any more are given up. */
  readonly needed: readonly number[];
  /** What each automaton has read before the text; nothing if left out. */
  readonly after?: readonly string[];
}

/** The most combinations of states that a search looks at. */
const MOST_COMBINATIONS = 20_000;

/** The order in which characters are tried, so that what is found reads like a path. */
const PREFERRED = "/abcdefghijklmnopqrstuvwxyz0123456789-_.ABCDEFGHIJKLMNOPQRSTUVWXYZ";

const FIRST_PRINTABLE = 0x21;
const PRINTABLE = 0x7f - FIRST_PRINTABLE;

/** A combination of one state of each automaton, and how it was reached. */
interface Reached {
  readonly states: readonly number[];
  readonly from: Reached | undefined;
  readonly character: number;
}

/**
 * Returns the shortest text that is wanted, by walking through all automata at the same time; undefined if there is none.
 *
 * @throws ExpressionError if the automata together have too many states to tell.
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

/** One character of each group that no automaton distinguishes. */
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
