import type { z } from "zod";
import type { YamlPath } from "../lib/positioned-yaml.ts";
import { isJsonObject } from "../lib/strict-json.ts";
import { suggesting } from "./fault.ts";
import type { Fault } from "./fault.ts";
import { knownKeysAt } from "./known-keys.ts";
import { textAt } from "./untyped.ts";

type Issue = z.core.$ZodIssue;
type IssueToWord = z.core.$ZodRawIssue;

const TYPE_WORDS: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  number: "a whole number",
  object: "a mapping of keys to values",
  record: "a mapping of keys to values",
  string: "text",
};

/** Our words for what the schema finds. Each continues the name of the key, and none repeats a value. */
export function issueWords(issue: IssueToWord): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) return "is missing";
      if (issue.input === null) return "is empty: give it a value or leave it out";
      return `must be ${TYPE_WORDS[issue.expected] ?? issue.expected}`;
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
    default:
      return undefined;
  }
}

/** The faults behind the schema's issues, with suggestions where something known is near. */
export function schemaFaults(issues: readonly Issue[], value: unknown): Fault[] {
  const plain = plainIssues(issues);
  const faults = plain
    .filter((issue) => issue.code !== "custom" || !hasUnknownKeys(issue.path, plain))
    .flatMap((issue) => faultsOf(issue, value));
  return faults.filter((fault) => !isMisspelt(fault, faults));
}

/** Which keys of a mapping go together cannot be told while some of them are misspelt. */
function hasUnknownKeys(path: Issue["path"], issues: readonly Issue[]): boolean {
  const name = JSON.stringify(path);
  return issues.some(
    (issue) => issue.code === "unrecognized_keys" && JSON.stringify(issue.path) === name,
  );
}

/** All issues, those within alternatives replaced by the ones of the alternative that was meant. */
export function plainIssues(issues: readonly Issue[], parent: Issue["path"] = []): Issue[] {
  return issues.flatMap((issue) => {
    const path = [...parent, ...issue.path];
    const meant = issue.code === "invalid_union" ? issue.errors.find(isMeant) : undefined;
    return meant === undefined ? [{ ...issue, path }] : plainIssues(meant, path);
  });
}

/** The alternative was meant when the value is of its type, and the fault lies deeper. */
function isMeant(issues: readonly Issue[]): boolean {
  return !issues.some(
    ({ code, path }) => path.length === 0 && (code === "invalid_type" || code === "invalid_value"),
  );
}

function faultsOf(issue: Issue, value: unknown): Fault[] {
  const path = issue.path.filter((segment) => typeof segment !== "symbol");
  const written = textAt(valueAt(value, path)) ?? "";
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key) => {
        const fault = { path: [...path, key], of: "key" as const, message: issue.message };
        return suggesting(fault, key, knownKeysAt(path));
      });
    case "invalid_key":
      return [{ path, of: "key", message: issue.issues[0]?.message ?? issue.message }];
    case "invalid_value":
      return [suggesting({ path, message: issue.message }, written, issue.values.map(String))];
    case "invalid_union": {
      const words = issue.errors
        .flat()
        .flatMap((inner) => (inner.code === "invalid_value" ? inner.values : []));
      return [suggesting({ path, message: issue.message }, written, words.map(String))];
    }
    case "invalid_type": {
      const isNumber = issue.expected === "string" && typeof valueAt(value, path) === "number";
      const hint = isNumber && issue.message === "must be text" ? { hint: "put it in quotes" } : {};
      return [{ path, message: issue.message, ...hint }];
    }
    case "custom": {
      const hint: unknown = issue.params?.["hint"];
      return [{ path, message: issue.message, ...(typeof hint === "string" ? { hint } : {}) }];
    }
    default:
      return [{ path, message: issue.message }];
  }
}

/** A key that is missing beside a key that was probably meant to be it: the second is told already. */
function isMisspelt(fault: Fault, faults: readonly Fault[]): boolean {
  if (!fault.message.startsWith("is missing")) return false;
  const key = String(fault.path.at(-1));
  return faults.some(
    (other) =>
      other.of === "key" &&
      other.hint === `did you mean ${key}?` &&
      JSON.stringify(other.path.slice(0, -1)) === JSON.stringify(fault.path.slice(0, -1)),
  );
}

/** What stands at a path; undefined when there is nothing. */
export function valueAt(value: unknown, path: YamlPath): unknown {
  return path.reduce<unknown>((parent, segment) => {
    if (Array.isArray(parent)) return typeof segment === "number" ? parent[segment] : undefined;
    return isJsonObject(parent) && Object.hasOwn(parent, segment) ? parent[segment] : undefined;
  }, value);
}
