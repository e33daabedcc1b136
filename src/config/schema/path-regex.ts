import { z } from "zod";
import { PathExpression } from "../../core/route/path-pattern.ts";
import { ExpressionError } from "../../lib/automaton/expression.ts";

/** A field for a regular expression for paths, as text. */
export function pathRegex() {
  return z.string().superRefine((text, context) => {
    const problem = problemOf(text);
    if (problem === undefined) return;
    const { message, hint } = problem;
    const params = hint === undefined ? {} : { params: { hint } };
    context.addIssue({ code: "custom", message, input: text, ...params });
  });
}

function problemOf(text: string): { message: string; hint?: string | undefined } | undefined {
  try {
    if (new PathExpression(text).beginning.startsWith("/")) return undefined;
    return { message: "must begin with a literal slash" };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    const { message, at, hint } = error;
    return { message: at === undefined ? message : `${message}, at character ${at}`, hint };
  }
}
