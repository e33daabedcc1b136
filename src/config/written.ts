import type { Configuration } from "./configuration.ts";
import { isJsonObject } from "../lib/text/strict-json.ts";
import type { YamlPath } from "../lib/files/positioned-yaml.ts";
import { nearest } from "../lib/text/nearest.ts";

/** An unvalidated configuration, and problems at its paths. */

/** Missing values, and values of another type, become empty or undefined. */

export type Mapping = Readonly<Record<string, unknown>>;

export function mappingAt(value: unknown, ...path: YamlPath): Mapping {
  const found = valueAt(value, path);
  return isJsonObject(found) ? found : {};
}

export function listAt(value: unknown, ...path: YamlPath): readonly unknown[] {
  const found = valueAt(value, path);
  return Array.isArray(found) ? found : [];
}

export function textAt(value: unknown, ...path: YamlPath): string | undefined {
  const found = valueAt(value, path);
  return typeof found === "string" ? found : undefined;
}

/** Returns the value at a path, or undefined if there is none. */
export function valueAt(value: unknown, path: YamlPath): unknown {
  return path.reduce<unknown>((parent, segment) => {
    if (Array.isArray(parent)) return typeof segment === "number" ? parent[segment] : undefined;
    return isJsonObject(parent) && Object.hasOwn(parent, segment) ? parent[segment] : undefined;
  }, value);
}

/** Returns a copy in which the value at a path is replaced. Missing mappings on the way are added. */
export function replacedAt(whole: unknown, path: YamlPath, value: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  if (Array.isArray(whole) && typeof key === "number") {
    return whole.map((entry, index) => (index === key ? replacedAt(entry, rest, value) : entry));
  }
  return { ...mappingAt(whole), [key]: replacedAt(valueAt(whole, [key]), rest, value) };
}

/** An unvalidated configuration, and the names that its keys refer to. */
export interface Written {
  readonly whole: Mapping;
  readonly routes: readonly Mapping[];
  /** The names of the upstreams. */
  readonly upstreams: readonly string[];
  /** The issuers whose tokens are accepted, Sallyport's own first. */
  readonly issuers: readonly string[];
}

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * A rule that involves several keys: references, duplicates, and keys that exclude each other. It sees the unvalidated
 * value, so that its problems are reported together with those of the schema.
 */
type Rule = (written: Written, env: Environment) => PathProblem[];

/** A key that is read only once, when the process starts. */
export interface ReadAtStart {
  /** Its name, with that of the section: `server.workers`. */
  readonly key: string;
  /** What keeps its value until the restart if the key has changed; default: the key. false: nothing does. */
  readonly keeps?: string | false;
}

/** What holds of the keys of a section, besides its `schema`. */
export interface Section {
  readonly rules?: readonly Rule[];
  /** Rules that need a configuration which is valid otherwise. */
  readonly rulesOfValid?: readonly ((configuration: Configuration) => PathProblem[])[];
  readonly atStart?: readonly ReadAtStart[];
}

/** Checks one route. `path` leads to it. */
type RouteRule = (route: Mapping, path: YamlPath, written: Written) => PathProblem[];

/** Checks one upstream. `path` leads to it. */
type UpstreamRule = (upstream: Mapping, path: YamlPath) => PathProblem[];

/** Returns one rule that applies others to each route in turn. */
export function ofEachRoute(...rules: readonly RouteRule[]): Rule {
  return (written) =>
    written.routes.flatMap((route, index) =>
      rules.flatMap((rule) => rule(route, ["routes", index], written)),
    );
}

export function ofEachUpstream(rule: UpstreamRule): Rule {
  return ({ whole, upstreams }) =>
    upstreams.flatMap((name) => rule(mappingAt(whole, "upstreams", name), ["upstreams", name]));
}

/** The issuer of our own tokens by default. */
export const OWN_ISSUER = "sallyport";

export function writtenIn(value: unknown): Written {
  const whole = mappingAt(value);
  const trusted = listAt(whole, "tokens", "trusted");
  return {
    whole,
    routes: listAt(whole, "routes").map((route) => mappingAt(route)),
    upstreams: Object.keys(mappingAt(whole, "upstreams")),
    issuers: [
      textAt(whole, "tokens", "issuer") ?? OWN_ISSUER,
      ...trusted.flatMap((entry) => textAt(entry, "issuer") ?? []),
    ],
  };
}

/** Reports a name that refers to nothing. */
export function unknownName(
  name: string | undefined,
  known: readonly string[],
  path: YamlPath,
  message: string,
): PathProblem[] {
  if (name === undefined || known.includes(name)) return [];
  return [withSuggestion({ path, message }, name, known)];
}

export const NO_UPSTREAM = "names an upstream that does not exist";

/** Reports the issuers in a list whose tokens are not accepted. */
export function unknownIssuers(
  list: unknown,
  path: YamlPath,
  { issuers }: Pick<Written, "issuers">,
): PathProblem[] {
  const message =
    "is not an issuer whose tokens are accepted: see tokens.issuer and tokens.trusted";
  return listAt(list).flatMap((issuer, index) =>
    unknownName(textAt(issuer), issuers, [...path, index], message),
  );
}

/**
 * Returns the entries whose name is that of an earlier entry, or is in `taken`. Entries without a name are never
 * returned.
 */
export function repeated<Entry>(
  entries: readonly Entry[],
  nameOf: (entry: Entry) => string | undefined,
  taken: Iterable<string> = [],
): Entry[] {
  const seen = new Set(taken);
  return entries.filter((entry) => {
    const name = nameOf(entry);
    if (name === undefined) return false;
    const known = seen.has(name);
    seen.add(name);
    return known;
  });
}

/** A configuration problem at a path, before its position in a file is known. */
export interface PathProblem {
  readonly path: YamlPath;
  /** Continues the name of the key: "must be …". Never repeats a value, which may be a secret. */
  readonly message: string;
  /** Whether the problem is with the key or with its value. */
  readonly of?: "key" | "value";
  readonly hint?: string;
  /** Another position that the problem involves. */
  readonly related?: { readonly path: YamlPath; readonly message: string };
}

/** Adds "did you mean" to a problem if one of the candidates is similar to the written text. */
export function withSuggestion(
  problem: PathProblem,
  written: string,
  candidates: Iterable<string>,
): PathProblem {
  const near = nearest(written, candidates);
  return near === undefined ? problem : { ...problem, hint: `did you mean ${near}?` };
}

/** Returns `upstreams.app.targets[0]`, or "the configuration" for the root. */
export function pathName(path: YamlPath): string {
  const name = path
    .map((segment) => (typeof segment === "number" ? `[${segment}]` : `.${segment}`))
    .join("");
  return name === "" ? "the configuration" : name.replace(/^\./, "");
}
