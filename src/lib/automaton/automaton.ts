import {
  characterOf,
  CHARACTERS,
  type CharacterSet,
  type Expression,
  ExpressionError,
} from "./expression.ts";

/** Limits on what one expression may cost in memory and time. */
const MOST_STATES = 1_000;
const MOST_NODES = 5_000;
const MOST_STEPS = 2_000_000;

function tooLarge(): ExpressionError {
  const hint = "repeat less often, or split it into several routes";
  return new ExpressionError("needs too large a table", undefined, hint);
}

/**
 * The nodes of a nondeterministic automaton (Thompson's construction). A node either jumps to others, or leads to one by
 * any character of a set.
 */
class Nodes {
  readonly jumps: number[][] = [];
  readonly sets: (CharacterSet | undefined)[] = [];
  readonly targets: number[] = [];

  add(set?: CharacterSet, target = -1): number {
    if (this.jumps.length === MOST_NODES) throw tooLarge();
    this.jumps.push([]);
    this.sets.push(set);
    this.targets.push(target);
    return this.jumps.length - 1;
  }

  /** Adds the nodes of an expression, the last of which lead to `next`. @returns the first node of the expression. */
  before(expression: Expression, next: number): number {
    if (expression.kind === "one") return this.add(expression.of, next);
    if (expression.kind === "sequence") {
      return expression.parts.reduceRight((after, part) => this.before(part, after), next);
    }
    if (expression.kind === "choice") {
      return this.#jumping(expression.options.map((option) => this.before(option, next)));
    }
    return this.#repeated(expression, next);
  }

  #repeated({ part, least, most }: Expression & { kind: "repeat" }, next: number): number {
    let node = next;
    if (most === Infinity) {
      node = this.#jumping([next]);
      this.jumps[node]?.push(this.before(part, node));
    } else {
      for (let times = least; times < most; times += 1) {
        node = this.#jumping([next, this.before(part, node)]);
      }
    }
    for (let times = 0; times < least; times += 1) node = this.before(part, node);
    return node;
  }

  #jumping(to: number[]): number {
    const node = this.add();
    this.jumps[node]?.push(...to);
    return node;
  }
}

/** Deterministic states (the subset construction). Each one represents a set of nodes. */
class Subsets {
  readonly #nodes = new Nodes();
  readonly #last = this.#nodes.add();
  readonly #known = new Map<string, number>();
  readonly #members: number[][] = [];
  #steps = 0;

  /** @throws ExpressionError if a limit is exceeded. */
  constructor(expression: Expression) {
    // State 0 is dead, state 1 the start.
    this.#stateOf(new Set());
    this.#stateOf(new Set([this.#nodes.before(expression, this.#last)]));
  }

  /** Returns the next state for each state and character, and 1 for each accepting state, else 0. */
  build() {
    const rows: Uint16Array[] = [];
    for (let state = 0; state < this.#members.length; state += 1) rows.push(this.#row(state));
    const table = new Uint16Array(rows.length * CHARACTERS);
    rows.forEach((row, state) => table.set(row, state * CHARACTERS));
    const accepting = this.#members.map((nodes) => (nodes.includes(this.#last) ? 1 : 0));
    return { table, accepting: Uint8Array.from(accepting) };
  }

  /** Returns the next state for each character. */
  #row(state: number): Uint16Array {
    const { sets, targets } = this.#nodes;
    const moving = (this.#members[state] ?? []).filter((node) => sets[node] !== undefined);
    this.#spend(moving.length * CHARACTERS);
    return new Uint16Array(CHARACTERS).map((_, character) => {
      const reached = moving.filter((node) => sets[node]?.[character] === 1);
      return this.#stateOf(new Set(reached.map((node) => targets[node] ?? this.#last)));
    });
  }

  /** Returns the state that represents these nodes and all nodes that they jump to. */
  #stateOf(reached: Set<number>): number {
    for (const node of reached) {
      this.#spend(1);
      for (const target of this.#nodes.jumps[node] ?? []) reached.add(target);
    }
    const members = [...reached].toSorted((a, b) => a - b);
    const key = members.join();
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    if (this.#members.length === MOST_STATES) throw tooLarge();
    this.#known.set(key, this.#members.length);
    this.#members.push(members);
    return this.#members.length - 1;
  }

  #spend(steps: number): void {
    this.#steps += steps;
    if (this.#steps > MOST_STEPS) throw tooLarge();
  }
}

interface SearchOptions {
  /** Whether a text is wanted, given which of the automata match it, in the order of the automata. */
  readonly wanted: (matching: readonly boolean[]) => boolean;
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

/** The dead state: no further text leads from it to acceptance. */
export const DEAD = 0;
export const START = 1;

/** A deterministic automaton. It needs one table lookup per character of a text, whatever the expression. */
export class Automaton {
  /** The next state for each state and character: one row of `CHARACTERS` cells per state. */
  readonly #table: Uint16Array;
  readonly #accepting: Uint8Array;
  #groups: readonly number[] | undefined;

  /** @throws ExpressionError if the expression needs too many states. */
  constructor(expression: Expression) {
    const { table, accepting } = new Subsets(expression).build();
    this.#table = table;
    this.#accepting = accepting;
  }

  /** Whether the whole text matches. */
  matches(text: string): boolean {
    return this.accepts(this.walk(START, text));
  }

  /** Returns the state after a text. */
  walk(from: number, text: string): number {
    const table = this.#table;
    let state = from;
    for (let at = 0; at < text.length && state !== DEAD; at += 1) {
      state = table[state * CHARACTERS + characterOf(text.charCodeAt(at))] ?? DEAD;
    }
    return state;
  }

  /** Returns the state after one character, given by its index. */
  next(state: number, character: number): number {
    return this.#table[state * CHARACTERS + character] ?? DEAD;
  }

  accepts(state: number): boolean {
    return this.#accepting[state] === 1;
  }

  /** The longest known prefix that all matching texts share. */
  get beginning(): string {
    let text = "";
    let state = START;
    while (!this.accepts(state)) {
      const row = this.#table.subarray(state * CHARACTERS, (state + 1) * CHARACTERS);
      const first = row.findIndex((after) => after !== DEAD);
      if (first === -1 || first !== row.findLastIndex((after) => after !== DEAD)) break;
      text += String.fromCharCode(first);
      state = row[first] ?? DEAD;
    }
    return text;
  }

  /**
   * Groups characters that this automaton never distinguishes.
   *
   * @returns the number of its group for each character.
   */
  get groups(): readonly number[] {
    return (this.#groups ??= this.#grouped());
  }

  #grouped(): number[] {
    const states = this.#accepting.length;
    const known = new Map<string, number>();
    return Array.from({ length: CHARACTERS }, (_, character) => {
      const column = Array.from({ length: states }, (_each, state) => this.next(state, character));
      const key = column.join();
      const group = known.get(key) ?? known.size;
      known.set(key, group);
      return group;
    });
  }
}
