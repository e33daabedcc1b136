import { CHARACTERS, characterOf } from "./characters.ts";
import type { Expression } from "./expression.ts";
import { buildStates } from "./subset-construction.ts";

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
    const states = buildStates(expression);
    this.#table = states.table;
    this.#accepting = states.accepting;
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
