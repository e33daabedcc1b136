import { isIP } from "node:net";
import type { YamlPath } from "../../lib/files/positioned-yaml.ts";
import { isSpelling } from "../../lib/http/path/loose-path.ts";
import { OWN_ROUTES } from "../../observe/metrics/label-words.ts";
import { type ComparableExpression, comparableExpression } from "../../policy/path-automata.ts";
import type { PathProblem } from "../path-problem.ts";
import { NAME } from "../schema/fields.ts";
import { listAt, type Mapping, mappingAt, textAt } from "../schema/untyped.ts";
import { withoutEscapes } from "../schema/url-path.ts";
import { NO_UPSTREAM, unknownName, type Written } from "./written.ts";

/** Rules about which requests a route matches, and where it sends them. */

/** Checks that a route has only one of `path`, `exact` and `regex`, and that its `regex` matches some path. */
export function patternProblems(route: Mapping, at: YamlPath): PathProblem[] {
  const [first, ...others] = ["path", "exact", "regex"].filter((key) => route[key] !== undefined);
  const problems = others.map((key): PathProblem => {
    const message = `and ${first ?? ""} exclude each other`;
    return { path: [...at, key], of: "key", message };
  });
  const paths = textAt(route, "paths") ?? "strict";
  const spelling = isSpelling(paths) ? paths : "asSent";
  if (expressionOf(route)?.matchesSome(spelling) !== false) return problems;
  const message =
    "matches no path: check it for a blank, a query, lower case after %, or something that paths: strict refuses";
  return [...problems, { path: [...at, "regex"], message }];
}

/** Checks that all paths of a route begin with the prefix that it strips. */
export function prefixProblems(route: Mapping, at: YamlPath): PathProblem[] {
  const stripped = textAt(route, "rewrite", "stripPrefix");
  if (stripped === undefined || isStripped(route, withoutEscapes(stripped))) return [];
  const message = "must be the beginning of the route's path, up to a slash or its end";
  return [{ path: [...at, "rewrite", "stripPrefix"], message }];
}

/** Whether all paths of a route begin with a prefix that ends at a segment boundary. */
function isStripped(route: Mapping, prefix: string): boolean {
  if (route["regex"] === undefined) return isWithin(pathOf(route), prefix);
  return expressionOf(route)?.isWithin(prefix) ?? true;
}

/** Returns the regular expression of a route; undefined if it has none, or one that does not parse. */
function expressionOf(route: Mapping): ComparableExpression | undefined {
  const text = textAt(route, "regex");
  return text === undefined ? undefined : comparableExpression(text);
}

export function upstreamProblems(
  route: Mapping,
  at: YamlPath,
  { upstreams }: Written,
): PathProblem[] {
  const upstream = textAt(route, "upstream");
  const mirror = textAt(route, "mirror", "upstream");
  const ofMirror = [...at, "mirror", "upstream"];
  const message = "is the upstream of the route: name another";
  return [
    ...unknownName(upstream, upstreams, [...at, "upstream"], NO_UPSTREAM),
    ...unknownName(mirror, upstreams, ofMirror, NO_UPSTREAM),
    ...(mirror === undefined || mirror !== upstream ? [] : [{ path: ofMirror, message }]),
  ];
}

export function networkProblems(route: Mapping, at: YamlPath, { whole }: Written): PathProblem[] {
  const networks = Object.keys(mappingAt(whole, "networks"));
  return ["allow", "deny"].flatMap((key) =>
    listAt(route, key).flatMap((entry, index) => {
      const name = textAt(entry) ?? "";
      if (!NAME.test(name) || isIP(name) !== 0) return [];
      return unknownName(name, networks, [...at, key, index], "must name a network that exists");
    }),
  );
}

function pathOf(route: Mapping): string {
  const regex = textAt(route, "regex");
  return regex ?? withoutEscapes(textAt(route, "exact") ?? textAt(route, "path") ?? "/");
}

function isWithin(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(prefix.endsWith("/") ? prefix : `${prefix}/`);
}

export function nameProblems({ routes }: Written): PathProblem[] {
  const seen = new Set<string>();
  return routes.flatMap((route, index) => {
    const name = textAt(route, "name");
    if (name === undefined) return [];
    const path = ["routes", index, "name"];
    if (OWN_ROUTES.includes(name)) return [{ path, message: "is reserved: choose another" }];
    if (seen.has(name)) return [{ path, message: "is the name of another route already" }];
    seen.add(name);
    return [];
  });
}

/** Reports routes that match the same requests as an earlier route, if neither is more specific. */
export function overlapProblems({ routes }: Written): PathProblem[] {
  const seen = new Map<string, number>();
  return routes.flatMap((route, index) => {
    const keys = requestsOf(route);
    const earlier = keys.map((key) => seen.get(key)).find((found) => found !== undefined);
    for (const key of keys) seen.set(key, seen.get(key) ?? index);
    if (earlier === undefined) return [];
    const message = `answers the same requests as routes[${earlier}]`;
    return [{ path: ["routes", index], message }];
  });
}

/** Returns one string for every combination of host, path and method that a route names. */
function requestsOf(route: Mapping): string[] {
  const kind = ["regex", "exact"].find((key) => route[key] !== undefined) ?? "prefix";
  const words = (key: string): string[] =>
    route[key] === undefined ? ["any"] : listAt(route, key).map((word) => textAt(word) ?? "");
  const hosts = new Set(words("hosts").map((host) => host.toLowerCase()));
  const methods = new Set(words("methods"));
  const headers = Object.entries(mappingAt(route, "headers"))
    .map(([name, value]) => `${name.toLowerCase()}: ${textAt(value) ?? ""}`)
    .toSorted()
    .join("\n");
  return [...hosts].flatMap((host) =>
    [...methods].map((method) => `${host} ${method} ${kind} ${pathOf(route)} ${headers}`),
  );
}
