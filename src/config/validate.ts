import type { YamlPath } from "../lib/files/positioned-yaml.ts";
import type { PathProblem } from "./path-problem.ts";
import { bypassProblems } from "./rules/bypass-rules.ts";
import { ownListenerProblems } from "./rules/listener-rules.ts";
import { ruleProblems } from "./rules/rules.ts";
import { withPathsFrom } from "./schema/fields.ts";
import { type Configuration, configurationSchema } from "./schema/configuration-schema.ts";
import { flattenIssues, issueMessage, schemaProblems } from "./schema/schema-problems.ts";
import { replacedAt, valueAt } from "./schema/untyped.ts";
import type { InterpolationContext } from "./interpolation.ts";

export type Validation =
  | { readonly configuration: Configuration; readonly problems: readonly [] }
  | { readonly configuration: undefined; readonly problems: readonly PathProblem[] };

/**
 * Validates a configuration against the schema, and checks the rules that involve several keys.
 *
 * @param written the merged value of all sources.
 * @param texts paths of texts that may stand for a number or a boolean, because their source has only text.
 */
export function validate(
  written: unknown,
  texts: readonly YamlPath[],
  context: Pick<InterpolationContext, "directory" | "env">,
): Validation {
  const parse = (value: unknown) =>
    withPathsFrom(context.directory, () =>
      configurationSchema().safeParse(value, { error: issueMessage }),
    );
  const asWritten = written === null ? {} : written;

  const first = parse(asWritten);
  const value = first.success
    ? asWritten
    : converted(asWritten, unfitPaths(first.error.issues), texts);
  const result = value === asWritten ? first : parse(value);

  const problems = [
    ...(result.success ? [] : schemaProblems(result.error.issues, value)),
    ...ruleProblems(value, context.env),
  ];
  if (!result.success || problems.length > 0) return { configuration: undefined, problems };
  const ruleBreaks = [...bypassProblems(result.data), ...ownListenerProblems(result.data)];
  return ruleBreaks.length === 0
    ? { configuration: deepFrozen(result.data), problems: [] }
    : { configuration: undefined, problems: ruleBreaks };
}

/** Returns the paths at which the schema expects a number or a boolean. */
function unfitPaths(issues: Parameters<typeof flattenIssues>[0]): Set<string> {
  const wanted = ["number", "int", "boolean"];
  return new Set(
    flattenIssues(issues).flatMap((issue) =>
      issue.code === "invalid_type" && wanted.includes(issue.expected)
        ? [JSON.stringify(issue.path)]
        : [],
    ),
  );
}

/** @returns the value with the mismatched texts converted, or the same value if there are none. */
function converted(
  value: unknown,
  unfit: ReadonlySet<string>,
  texts: readonly YamlPath[],
): unknown {
  return texts
    .filter((path) => unfit.has(JSON.stringify(path)))
    .reduce((whole, path) => replacedAt(whole, path, scalarOf(valueAt(whole, path))), value);
}

function scalarOf(text: unknown): unknown {
  if (text === "true" || text === "false") return text === "true";
  return typeof text === "string" && /^\d{1,15}$/.test(text) ? Number(text) : text;
}

function deepFrozen<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    for (const inner of Object.values(value)) deepFrozen(inner);
    Object.freeze(value);
  }
  return value;
}
