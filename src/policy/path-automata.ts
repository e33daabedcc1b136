import { beginningOf, PathExpression, type PathPattern } from "../core/route/route.ts";
import { Automaton, commonText } from "../lib/automaton/automaton.ts";
import {
  ANY_TEXT,
  type Expression,
  ExpressionError,
  literal,
  parseExpression,
} from "../lib/automaton/expression.ts";
import type { PathSpelling } from "../lib/http/path/canonical-path.ts";

const automata = new WeakMap<PathPattern, Automaton>();

/** Returns an automaton that matches the paths of a pattern, for comparison with other patterns. */
export function automatonOf(path: PathPattern): Automaton {
  if ("regex" in path) return path.regex.automaton;
  const known = automata.get(path);
  if (known !== undefined) return known;
  const automaton = new Automaton("exact" in path ? literal(path.exact) : below(path.prefix));
  automata.set(path, automaton);
  return automaton;
}

/** Whether two patterns may have a path in common, judging by the prefixes of their paths. May be too broad. */
export function mayOverlap(one: PathPattern, other: PathPattern): boolean {
  const [a, b] = [beginningOf(one), beginningOf(other)];
  return a.startsWith(b) || b.startsWith(a);
}

/** Returns an expression for the paths of a prefix, which ends on a segment boundary. */
function below(prefix: string): Expression {
  if (prefix.endsWith("/")) return { kind: "sequence", parts: [literal(prefix), ANY_TEXT] };
  const rest: Expression = { kind: "sequence", parts: [literal("/"), ANY_TEXT] };
  const options: Expression[] = [{ kind: "sequence", parts: [] }, rest];
  return { kind: "sequence", parts: [literal(prefix), { kind: "choice", options }] };
}

const PLAIN = String.raw`\w\-~!$&'()*+,=:@`;
const STRICT_BYTE = "%([0146-9A-F][0-9A-F]|2[0-24-9A-E]|3[0-9ACDE]|5[0-9ABD-F])";
const ANY_BYTE = "%[2-9A-F][0-9A-F]";

/** Returns an expression for paths without empty segments and dot segments. */
function segmented(byte: string): string {
  const segment = `(${byte}|[${PLAIN}.])*`;
  return `(/(\\.{0,2}([${PLAIN}]|${byte})${segment}|\\.{3}${segment}))+/?|/`;
}

const EXPRESSIONS: Readonly<Record<PathSpelling, string>> = {
  strict: segmented(STRICT_BYTE),
  encoded: segmented(ANY_BYTE),
  asSent: `/([${PLAIN}./;\\[\\]|{}\\^]|${ANY_BYTE})*`,
};

const canonical = new Map<PathSpelling, Automaton>();

/** Returns an automaton that matches the canonical paths of a spelling, and a few whose bytes make them invalid. */
export function canonicalPaths(spelling: PathSpelling): Automaton {
  const known = canonical.get(spelling);
  if (known !== undefined) return known;
  const automaton = new Automaton(parseExpression(EXPRESSIONS[spelling]));
  canonical.set(spelling, automaton);
  return automaton;
}

/** @returns undefined if the expression is invalid, or if its paths do not share the prefix `/`. */
export function comparableExpression(text: string) {
  try {
    const { automaton, beginning } = new PathExpression(text);
    if (!beginning.startsWith("/")) return undefined;
    return {
      /** Whether it matches a path of this spelling. */
      matchesSome(spelling: PathSpelling): boolean {
        const both = [automaton, canonicalPaths(spelling)];
        return commonText(both, { needed: [0, 1], wanted: () => true }) !== undefined;
      },
      /** Whether all paths that it matches are at or below a prefix. */
      isWithin(prefix: string): boolean {
        const outside = { needed: [0], wanted: ([, isBelow]: readonly boolean[]) => !isBelow };
        return commonText([automaton, automatonOf({ prefix })], outside) === undefined;
      },
    };
  } catch (error) {
    if (error instanceof ExpressionError) return undefined;
    throw error;
  }
}
