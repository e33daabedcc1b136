import { z } from "zod";
import { PathExpression } from "../../core/route/route.ts";
import { ExpressionError } from "../../lib/automaton/expression.ts";
import { canonicalPath } from "../../lib/http/path/canonical-path.ts";
import { refuse } from "./fields.ts";

/** How a field uses its path: as a prefix to match, as the only path to match, or as plain text. */
export type PathUse = "prefix" | "exact" | "plain";

/**
 * A path in the canonical form with which requests are matched. Rejects text that looks like a pattern; `%2A`, `%3A`,
 * `%24` and `%2B` stand for the literal characters.
 */
export function urlPath(use: PathUse) {
  return z.string().transform((path, context) => {
    const problem = patternProblem(path, use) ?? spellingProblem(path);
    return problem === undefined
      ? withoutEscapes(path)
      : refuse(context, problem.message, { hint: problem.hint });
  });
}

/** A regular expression for paths, as text. */
export function pathRegex() {
  return z.string().superRefine((text, context) => {
    const problem = expressionProblem(text);
    if (problem !== undefined) refuse(context, problem.message, { hint: problem.hint });
  });
}

function expressionProblem(text: string): SyntaxProblem | undefined {
  try {
    if (new PathExpression(text).beginning.startsWith("/")) return undefined;
    return { message: "must begin with a literal slash" };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    const { message, at, hint } = error;
    return { message: at === undefined ? message : `${message}, at character ${at}`, hint };
  }
}

interface SyntaxProblem {
  readonly message: string;
  readonly hint?: string | undefined;
}

/** Decodes the escapes that prevent a character from being taken for a pattern. */
export function withoutEscapes(path: string): string {
  return path.replaceAll(/%(?:2A|2B|3A|24)/gi, decodeURIComponent);
}

/** Signs of wildcards, parameters and regular expressions, each with a message. */
const PATTERNS: readonly (readonly [found: RegExp, what: string])[] = [
  [/^\s*(?:\^|~\*?\s|=\s|\^~\s)/, "is a plain path, not a regular expression"],
  [/\.[*+]|[[\]|\\^]|\(\?|\$$/, "is a plain path, not a regular expression"],
  [/\*/, "is a plain path, without wildcards"],
  [/\/:|[{}]/, "is a plain path, without parameters"],
  [/\?/, "is a path without a query, and ? has no other meaning"],
];

/** Prefixes of paths in other configuration languages: `^/api`, nginx's `~ ^/api` and `= /api`. */
const SIGNS = /^[\s^~=*]+/;
const FIRST_MARK = /\.[*+]|[*?{}[\]|\\^()$]|\/:/;

function patternProblem(path: string, use: PathUse): SyntaxProblem | undefined {
  const what = PATTERNS.find(([found]) => found.test(path))?.[1];
  if (what === undefined) return undefined;
  const bare = path.replace(SIGNS, "");
  const mark = bare.search(FIRST_MARK);
  const ends = bare.endsWith("$") && mark === bare.length - 1;
  // The segment before any other mark may be incomplete.
  const stem =
    mark === -1 || ends ? bare.replace(/\$$/, "") : bare.slice(0, bare.lastIndexOf("/", mark) + 1);
  return { message: what, hint: stem.startsWith("/") ? adviceFor(use, stem, ends) : undefined };
}

function adviceFor(use: PathUse, stem: string, ends: boolean): string {
  const literal = "%2A, %3A, %24 and %2B stand for *, :, $ and + themselves";
  if (use === "plain") return `write ${stem === "/" ? stem : stem.replace(/\/$/, "")}; ${literal}`;
  const other = `a regular expression goes under regex; ${literal}`;
  if (ends) return `for this one path write exact: ${stem}; ${other}`;
  return use === "exact"
    ? `exact takes one path; for all below it write path: ${stem}; ${other}`
    : `a path is a prefix already: write ${stem}; ${other}`;
}

function spellingProblem(path: string): SyntaxProblem | undefined {
  if (!path.startsWith("/")) return { message: "must begin with a slash" };
  const matched = canonicalPath(path)?.matchPath;
  if (matched === withoutEscapes(path)) return undefined;
  return {
    message: "must be a plain path: no //, no dot segments, no query, no unnecessary encoding",
    hint: matched === undefined ? undefined : `did you mean ${matched}?`,
  };
}
