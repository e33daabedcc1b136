import { Automaton } from "../../lib/automaton/automaton.ts";
import { commonText } from "../../lib/automaton/common-text.ts";
import { parseExpression } from "../../lib/automaton/parse-expression.ts";

/**
 * The paths that a route matches. A prefix matches on segment boundaries; a regular expression matches the whole
 * path.
 */
export type PathPattern =
  | { readonly prefix: string }
  | { readonly exact: string }
  | { readonly regex: PathExpression };

/** A regular expression for paths, compiled when it is first needed. */
export class PathExpression {
  readonly text: string;
  #automaton: Automaton | undefined;
  #beginning: string | undefined;

  constructor(text: string) {
    this.text = text;
  }

  /** @throws ExpressionError */
  get automaton(): Automaton {
    return (this.#automaton ??= new Automaton(parseExpression(this.text)));
  }

  /** The prefix that all matching paths share. */
  get beginning(): string {
    return (this.#beginning ??= this.automaton.beginning);
  }

  /** A path that matches. */
  get sample(): string {
    return commonText([this.automaton], { needed: [0], wanted: () => true }) ?? this.beginning;
  }

  toJSON(): string {
    return this.text;
  }
}

/** Returns a prefix, `=` and an exact path, or `~` and a regular expression. */
export function pathWords(path: PathPattern): string {
  if ("exact" in path) return `=${path.exact}`;
  return "regex" in path ? `~${path.regex.text}` : path.prefix;
}

/** Returns the prefix that all paths of a pattern share. */
export function beginningOf(path: PathPattern): string {
  if ("exact" in path) return path.exact;
  return "regex" in path ? path.regex.beginning : path.prefix;
}
