import type { z } from "zod";
import {
  type Environment,
  type PathProblem,
  mappingAt,
  pathName,
  replacedAt,
  textAt,
  valueAt,
  withSuggestion,
  writtenIn,
} from "./written.ts";
import { type Configuration, configurationSchema, SECTIONS } from "./configuration.ts";
import type { YamlPath } from "../lib/files/positioned-yaml.ts";
import { withPathsFrom } from "./fields.ts";
import type { InterpolationContext } from "./interpolation.ts";
import { isJsonObject } from "../lib/text/strict-json.ts";
import { knownKeys, type KnownKeys } from "./schema-parts.ts";
import { synonymOf, usualMistake } from "./usual-mistakes.ts";

/** Returns the keys that the schema allows at a path; empty if there are none. */
function knownKeysAt(path: YamlPath): readonly string[] {
  let known: KnownKeys | undefined = knownKeys();
  for (const segment of path) known = known?.below(segment);
  return known?.names ?? [];
}

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
): {
  readonly configuration: Configuration | undefined;
  readonly problems: readonly PathProblem[];
} {
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

  const all = [
    ...(result.success ? [] : schemaProblems(result.error.issues, value)),
    ...(isJsonObject(value) ? ruleProblems(value, context.env) : []),
  ];
  const problems = withoutMisspelt(all);
  if (!result.success || problems.length > 0) return { configuration: undefined, problems };
  const ruleBreaks = SECTIONS.flatMap(({ rulesOfValid = [] }) =>
    rulesOfValid.flatMap((rule) => rule(result.data)),
  );
  return ruleBreaks.length === 0
    ? { configuration: deepFrozen(result.data), problems: [] }
    : { configuration: undefined, problems: ruleBreaks };
}

function ruleProblems(value: unknown, env: Environment): PathProblem[] {
  const written = writtenIn(value);
  return SECTIONS.flatMap(({ rules = [] }) => rules.flatMap((rule) => rule(written, env)));
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

type Issue = z.core.$ZodIssue;

type RawIssue = z.core.$ZodRawIssue;

const TYPE_NAMES: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  number: "a whole number",
  object: "a mapping of keys to values",
  record: "a mapping of keys to values",
  string: "text",
};

/** Returns our message for an issue of the schema. It continues the name of the key, and never repeats a value. */
function issueMessage(issue: RawIssue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) return "is missing";
      if (issue.input === null) return "is empty: give it a value or leave it out";
      return `must be ${TYPE_NAMES[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      if (issue.input === undefined) return "is missing";
      return issue.values.length === 1
        ? `must be ${String(issue.values[0])}`
        : `must be one of ${issue.values.join(", ")}`;
    case "too_small":
      return issue.origin === "array" ? "must not be empty" : `must be at least ${issue.minimum}`;
    case "too_big":
      return `must be at most ${issue.maximum}`;
    case "unrecognized_keys":
      return "is not a known key";
    case "invalid_union":
      return kindMessage(issue);
    default:
      return undefined;
  }
}

/** Returns the message for a mapping whose kind is missing or unknown; its other keys cannot be checked. */
function kindMessage(issue: Extract<RawIssue, { code: "invalid_union" }>): string | undefined {
  if (issue.discriminator === undefined) return undefined;
  const kind = isJsonObject(issue.input) ? issue.input[issue.discriminator] : undefined;
  return kind === undefined ? "is missing" : `must be one of ${kindsOf(issue).join(", ")}`;
}

function kindsOf(issue: {
  readonly code: "invalid_union";
  readonly options?: readonly unknown[] | undefined;
}): readonly unknown[] {
  return issue.options ?? [];
}

/** Converts the schema's issues to problems, with suggestions of similar keys. */
function schemaProblems(issues: readonly Issue[], value: unknown): PathProblem[] {
  const plain = flattenIssues(issues);
  // Where a mapping has unknown keys, they may be misspelt, and rules about combinations of keys are not reported.
  const misspelt = plain.filter(({ code }) => code === "unrecognized_keys");
  const unknown = new Set(misspelt.map(({ path }) => JSON.stringify(path)));
  return plain
    .filter(({ code, path }) => code !== "custom" || !unknown.has(JSON.stringify(path)))
    .flatMap((issue) => problemsOf(issue, value))
    .map((problem) => withUsualHint(problem, value));
}

/** Adds what to write instead, if the mistake is a usual one: that is better than a similar word. */
function withUsualHint(problem: PathProblem, value: unknown): PathProblem {
  const { path, message } = problem;
  const hint = usualMistake(`${pathName(path)} ${message}`, valueAt(value, path));
  return hint === undefined ? problem : { ...problem, hint };
}

/** Flattens issues: an issue of a union becomes the issues of the alternative that was probably meant. */
function flattenIssues(issues: readonly Issue[], parent: Issue["path"] = []): Issue[] {
  return issues.flatMap((issue) => {
    const path = [...parent, ...issue.path];
    const meant = issue.code === "invalid_union" ? issue.errors.find(isMeant) : undefined;
    return meant === undefined ? [{ ...issue, path }] : flattenIssues(meant, path);
  });
}

/** An alternative was probably meant if the value itself has the right type, and the issues are further down. */
function isMeant(issues: readonly Issue[]): boolean {
  return !issues.some(
    ({ code, path }) => path.length === 0 && (code === "invalid_type" || code === "invalid_value"),
  );
}

function problemsOf(issue: Issue, value: unknown): PathProblem[] {
  const path = issue.path.filter((segment) => typeof segment !== "symbol");
  const written = textAt(valueAt(value, path)) ?? "";
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key) => {
        const problem = { path: [...path, key], of: "key" as const, message: issue.message };
        const known = knownKeysAt(path);
        const meant = synonymOf(key, known);
        if (meant !== undefined) return { ...problem, hint: `did you mean ${meant}?` };
        return withSuggestion(problem, key, known);
      });
    case "invalid_key":
      return [{ path, of: "key", message: issue.issues[0]?.message ?? issue.message }];
    case "invalid_value":
      return [withSuggestion({ path, message: issue.message }, written, issue.values.map(String))];
    case "invalid_union": {
      const kind = String(path.at(-1));
      const above = path.slice(0, -1);
      const other = Object.keys(mappingAt(value, ...above)).find((key) => synonymOf(key, [kind]));
      if (issue.message === "is missing" && other !== undefined) {
        const message = "is not a known key";
        return [{ path: [...above, other], of: "key", message, hint: `did you mean ${kind}?` }];
      }
      const words = issue.errors
        .flat()
        .flatMap((inner) => (inner.code === "invalid_value" ? inner.values : []));
      const known = [...words, ...kindsOf(issue)].map(String);
      return [withSuggestion({ path, message: issue.message }, written, known)];
    }
    case "invalid_type": {
      const quoted = issue.message === "must be text" && typeof valueAt(value, path) === "number";
      return [{ path, message: issue.message, ...(quoted && { hint: "put it in quotes" }) }];
    }
    case "custom": {
      const hint: unknown = issue.params?.["hint"];
      return [{ path, message: issue.message, ...(typeof hint === "string" ? { hint } : {}) }];
    }
    default:
      return [{ path, message: issue.message }];
  }
}

/** Leaves out missing keys that a misspelt key in the same mapping already explains. */
function withoutMisspelt(problems: readonly PathProblem[]): PathProblem[] {
  const placeOf = (path: YamlPath, hint?: string) => JSON.stringify([path.slice(0, -1), hint]);
  const misspelt = new Set(
    problems.filter(({ of }) => of === "key").map(({ path, hint }) => placeOf(path, hint)),
  );
  return problems.filter(({ path, message }) => {
    const hint = `did you mean ${String(path.at(-1))}?`;
    return !message.startsWith("is missing") || !misspelt.has(placeOf(path, hint));
  });
}
