import { isIP } from "node:net";
import { OWN_ROUTES } from "../../observe/metrics/label-words.ts";
import { isSpelling } from "../../lib/http/path/loose-path.ts";
import { type ComparableExpression, comparableExpression } from "../../policy/path-automata.ts";
import { accessProblems } from "./access-rules.ts";
import { withSuggestion } from "../path-problem.ts";
import type { PathProblem } from "../path-problem.ts";
import { NAME } from "../schema/fields.ts";
import { listAt, mappingAt, textAt } from "../schema/untyped.ts";
import { withoutEscapes } from "../schema/url-path.ts";

/** The names that routes can refer to. */
interface KnownNames {
  readonly upstreams: readonly string[];
  readonly networks: readonly string[];
}

/** Checks rules that involve several keys of a route, or several routes, on the unvalidated value. */
export function routeProblems(written: unknown, known: KnownNames): PathProblem[] {
  const { upstreams } = known;
  if (written === undefined) {
    if (upstreams.length < 2) return [];
    return [
      { path: ["routes"], message: "is missing: there is more than one upstream to choose from" },
    ];
  }
  const routes = listAt(written).map(mappingAt);
  return [
    ...routes.flatMap((route, index) => singleRouteProblems(route, index, known)),
    ...nameProblems(routes),
    ...overlapProblems(routes),
  ];
}

type WrittenRoute = Readonly<Record<string, unknown>>;

function singleRouteProblems(
  route: WrittenRoute,
  index: number,
  { upstreams, networks }: KnownNames,
): PathProblem[] {
  const problems = upstreamProblems(route, index, upstreams);
  problems.push(...patternProblems(route, index));
  problems.push(...accessProblems(route, index), ...networkProblems(route, index, networks));
  const stripped = textAt(mappingAt(route["rewrite"])["stripPrefix"]);
  if (stripped !== undefined && !isStripped(route, withoutEscapes(stripped))) {
    const message = "must be the beginning of the route's path, up to a slash or its end";
    problems.push({ path: ["routes", index, "rewrite", "stripPrefix"], message });
  }
  return problems;
}

/** Checks that a route has only one of `path`, `exact` and `regex`, and that its `regex` matches some path. */
function patternProblems(route: WrittenRoute, index: number): PathProblem[] {
  const [first, ...others] = ["path", "exact", "regex"].filter((key) => route[key] !== undefined);
  const problems = others.map((key): PathProblem => {
    const message = `and ${first ?? ""} exclude each other`;
    return { path: ["routes", index, key], of: "key", message };
  });
  const paths = textAt(route["paths"]) ?? "strict";
  const spelling = isSpelling(paths) ? paths : "asSent";
  if (expressionOf(route)?.matchesSome(spelling) !== false) return problems;
  const message =
    "matches no path: check it for a blank, a query, lower case after %, or something that paths: strict refuses";
  return [...problems, { path: ["routes", index, "regex"], message }];
}

/** Whether all paths of a route begin with a prefix that ends at a segment boundary. */
function isStripped(route: WrittenRoute, prefix: string): boolean {
  if (route["regex"] === undefined) return isWithin(pathOf(route), prefix);
  return expressionOf(route)?.isWithin(prefix) ?? true;
}

/** Returns the regular expression of a route; undefined if it has none, or one that does not parse. */
function expressionOf(route: WrittenRoute): ComparableExpression | undefined {
  const text = textAt(route["regex"]);
  return text === undefined ? undefined : comparableExpression(text);
}

function upstreamProblems(
  route: WrittenRoute,
  index: number,
  upstreams: readonly string[],
): PathProblem[] {
  const upstream = textAt(route["upstream"]);
  const mirror = textAt(mappingAt(route["mirror"])["upstream"]);
  const named = [
    { path: ["routes", index, "upstream"], name: upstream },
    { path: ["routes", index, "mirror", "upstream"], name: mirror },
  ];
  const problems = named.flatMap(({ path, name }) => {
    if (name === undefined || upstreams.includes(name)) return [];
    const message = "names an upstream that does not exist";
    return [withSuggestion({ path, message }, name, upstreams)];
  });
  if (mirror === undefined || mirror !== upstream) return problems;
  const message = "is the upstream of the route: name another";
  return [...problems, { path: ["routes", index, "mirror", "upstream"], message }];
}

function networkProblems(
  route: WrittenRoute,
  index: number,
  networks: readonly string[],
): PathProblem[] {
  return (["allow", "deny"] as const).flatMap((key) =>
    listAt(route[key]).flatMap((entry, at) => {
      const name = textAt(entry) ?? "";
      if (!NAME.test(name) || isIP(name) !== 0 || networks.includes(name)) return [];
      const path = ["routes", index, key, at];
      return [withSuggestion({ path, message: "must name a network that exists" }, name, networks)];
    }),
  );
}

function pathOf(route: WrittenRoute): string {
  const regex = textAt(route["regex"]);
  return regex ?? withoutEscapes(textAt(route["exact"]) ?? textAt(route["path"]) ?? "/");
}

function isWithin(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(prefix.endsWith("/") ? prefix : `${prefix}/`);
}

function nameProblems(routes: readonly WrittenRoute[]): PathProblem[] {
  const seen = new Set<string>();
  return routes.flatMap((route, index) => {
    const name = textAt(route["name"]);
    if (name === undefined) return [];
    const path = ["routes", index, "name"];
    if (OWN_ROUTES.includes(name)) return [{ path, message: "is reserved: choose another" }];
    if (seen.has(name)) return [{ path, message: "is the name of another route already" }];
    seen.add(name);
    return [];
  });
}

/** Reports routes that match the same requests as an earlier route, if neither is more specific. */
function overlapProblems(routes: readonly WrittenRoute[]): PathProblem[] {
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
function requestsOf(route: WrittenRoute): string[] {
  const kind = ["regex", "exact"].find((key) => route[key] !== undefined) ?? "prefix";
  const words = (key: string): string[] =>
    route[key] === undefined ? ["any"] : listAt(route[key]).map((word) => textAt(word) ?? "");
  const hosts = new Set(words("hosts").map((host) => host.toLowerCase()));
  const methods = new Set(words("methods"));
  const headers = Object.entries(mappingAt(route["headers"]))
    .map(([name, value]) => `${name.toLowerCase()}: ${textAt(value) ?? ""}`)
    .toSorted()
    .join("\n");
  return [...hosts].flatMap((host) =>
    [...methods].map((method) => `${host} ${method} ${kind} ${pathOf(route)} ${headers}`),
  );
}
