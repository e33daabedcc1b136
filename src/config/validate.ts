import type { YamlPath } from "../lib/positioned-yaml.ts";
import { isJsonObject } from "../lib/strict-json.ts";
import type { Fault } from "./fault.ts";
import { ruleFaults } from "./rules.ts";
import { configurationSchema } from "./schema.ts";
import type { Configuration } from "./schema.ts";
import { issueWords, plainIssues, schemaFaults, valueAt } from "./schema-faults.ts";
import type { Surroundings } from "./interpolation.ts";

export type Verdict =
  | { readonly configuration: Configuration; readonly faults: readonly [] }
  | { readonly configuration: undefined; readonly faults: readonly Fault[] };

/**
 * @param written everything that was said, from all sources.
 * @param texts where a text stands that may mean a number or a boolean, since its source knows only text.
 */
export function validate(
  written: unknown,
  texts: readonly YamlPath[],
  surroundings: Surroundings,
): Verdict {
  const schema = configurationSchema(surroundings.directory);
  const parse = (value: unknown) => schema.safeParse(value, { error: issueWords });
  const asWritten = written === null ? {} : written;

  const first = parse(asWritten);
  const value = first.success
    ? asWritten
    : converted(asWritten, unfitPaths(first.error.issues), texts);
  const result = value === asWritten ? first : parse(value);

  const faults = [
    ...(result.success ? [] : schemaFaults(result.error.issues, value)),
    ...ruleFaults(value, surroundings.env),
  ];
  return result.success && faults.length === 0
    ? { configuration: deepFrozen(result.data), faults: [] }
    : { configuration: undefined, faults };
}

/** Where the schema wants a number or a boolean. */
function unfitPaths(issues: Parameters<typeof plainIssues>[0]): Set<string> {
  const wanted = ["number", "int", "boolean"];
  return new Set(
    plainIssues(issues).flatMap((issue) =>
      issue.code === "invalid_type" && wanted.includes(issue.expected)
        ? [JSON.stringify(issue.path)]
        : [],
    ),
  );
}

/** @returns the value with the texts that do not fit converted, or the same value when there are none. */
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

function replacedAt(whole: unknown, path: YamlPath, value: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  if (Array.isArray(whole)) {
    return whole.map((entry, index) => (index === key ? replacedAt(entry, rest, value) : entry));
  }
  return isJsonObject(whole) ? { ...whole, [key]: replacedAt(whole[key], rest, value) } : whole;
}

function deepFrozen<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    for (const inner of Object.values(value)) deepFrozen(inner);
    Object.freeze(value);
  }
  return value;
}
