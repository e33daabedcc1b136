import type { YamlPath } from "../../lib/files/positioned-yaml.ts";
import { type PathProblem, withSuggestion } from "../path-problem.ts";
import { listAt, type Mapping, mappingAt, textAt } from "../schema/untyped.ts";

/** An unvalidated configuration, and the names that its keys refer to. */
export interface Written {
  readonly whole: Mapping;
  readonly routes: readonly Mapping[];
  /** The names of the upstreams. */
  readonly upstreams: readonly string[];
  /** The issuers whose tokens are accepted, Sallyport's own first. */
  readonly issuers: readonly string[];
}

/** Checks one route. `path` leads to it. */
export type RouteRule = (route: Mapping, path: YamlPath, written: Written) => PathProblem[];

/** Checks one upstream. `path` leads to it. */
export type UpstreamRule = (upstream: Mapping, path: YamlPath) => PathProblem[];

export function writtenIn(value: unknown): Written {
  const whole = mappingAt(value);
  const trusted = listAt(whole, "tokens", "trusted");
  return {
    whole,
    routes: listAt(whole, "routes").map((route) => mappingAt(route)),
    upstreams: Object.keys(mappingAt(whole, "upstreams")),
    issuers: [
      textAt(whole, "tokens", "issuer") ?? "sallyport",
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
