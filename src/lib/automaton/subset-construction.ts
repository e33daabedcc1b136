import { CHARACTERS, type CharacterSet } from "./characters.ts";
import { type Expression, ExpressionError } from "./expression.ts";

/** Limits on what one expression may cost in memory and time. */
const MOST_STATES = 1_000;
const MOST_NODES = 5_000;
const MOST_STEPS = 2_000_000;

const TOO_LARGE = "needs too large a table";
const TOO_LARGE_HINT = "repeat less often, or split it into several routes";

interface States {
  /** The next state for each state and character. State 0 is dead; state 1 is the start. */
  readonly table: Uint16Array;
  /** 1 for each accepting state, else 0. */
  readonly accepting: Uint8Array;
}

/**
 * Builds a nondeterministic automaton by Thompson's construction, and from it a deterministic one by the subset
 * construction.
 *
 * @throws ExpressionError if a limit is exceeded.
 */
export function buildStates(expression: Expression): States {
  const nodes = new Nodes();
  const last = nodes.add();
  const first = nodes.before(expression, last);
  return new Subsets(nodes, last).from(first);
}

/**
 * The nodes of a nondeterministic automaton. A node either jumps to others, or leads to one by any character of a
 * set.
 */
class Nodes {
  readonly jumps: number[][] = [];
  readonly sets: (CharacterSet | undefined)[] = [];
  readonly targets: number[] = [];

  add(set?: CharacterSet, target = -1): number {
    if (this.jumps.length === MOST_NODES) {
      throw new ExpressionError(TOO_LARGE, undefined, TOO_LARGE_HINT);
    }
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

/** Deterministic states. Each one represents a set of nodes. */
class Subsets {
  readonly #nodes: Nodes;
  readonly #last: number;
  readonly #known = new Map<string, number>();
  readonly #members: number[][] = [];
  #steps = 0;

  constructor(nodes: Nodes, last: number) {
    this.#nodes = nodes;
    this.#last = last;
  }

  from(first: number): States {
    this.#stateOf(new Set());
    this.#stateOf(new Set([first]));
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
    if (this.#members.length === MOST_STATES) this.#tooLarge();
    this.#known.set(key, this.#members.length);
    this.#members.push(members);
    return this.#members.length - 1;
  }

  #spend(steps: number): void {
    this.#steps += steps;
    if (this.#steps > MOST_STEPS) this.#tooLarge();
  }

  #tooLarge(): never {
    throw new ExpressionError(TOO_LARGE, undefined, TOO_LARGE_HINT);
  }
}
