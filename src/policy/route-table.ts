import { beginningOf, type PathPattern, type Route, type RouteQuery } from "../core/route/route.ts";
import { type ComparedHeader, comparedHeader, hasHeader } from "../lib/http/header-values.ts";
import { compileRequirements, isWeaker } from "./authorize.ts";

/** Returns the route of a request, or undefined if none matches. */
export type RouteTable = (request: RouteQuery) => Route | undefined;

/**
 * Sorts routes in matching order, the most specific first. The criteria, in order:
 *
 * 1. An exact host precedes a wildcard, which precedes a route for all hosts.
 * 2. A longer path precedes a shorter one. The length of a regular expression is that of the prefix of all its paths.
 * 3. An exact path precedes a regular expression, which precedes a prefix.
 * 4. A route with methods precedes one without.
 * 5. A route with more headers precedes one with fewer.
 */
export function bySpecificity(routes: readonly Route[]): Route[] {
  return routes
    .flatMap(byHostKind)
    .toSorted(
      (a, b) =>
        hostRank(b) - hostRank(a) ||
        beginningOf(b.path).length - beginningOf(a.path).length ||
        pathRank(b.path) - pathRank(a.path) ||
        Number(b.methods !== undefined) - Number(a.methods !== undefined) ||
        (b.headers?.length ?? 0) - (a.headers?.length ?? 0),
    );
}

/** Splits a route with both exact hosts and wildcards, so that each part has its own rank. */
function byHostKind(route: Route): Route[] {
  const wildcards = route.hosts?.filter((host) => host.startsWith("*.")) ?? [];
  const exact = route.hosts?.filter((host) => !host.startsWith("*.")) ?? [];
  if (wildcards.length === 0 || exact.length === 0) return [route];
  return [
    { ...route, hosts: exact },
    { ...route, hosts: wildcards },
  ];
}

function hostRank(route: Route): number {
  if (route.hosts === undefined) return 0;
  return route.hosts.some((host) => host.startsWith("*.")) ? 1 : 2;
}

function pathRank(path: PathPattern): number {
  if ("exact" in path) return 2;
  return "regex" in path ? 1 : 0;
}

/**
 * @param routes the routes in any order, with unique names.
 * @param onEvasion called with a request of whose headers another reader could find those of a stricter route: a caller could
 * evade the stricter route, and the backend would still act on the headers.
 * @throws if a route requires something unknown.
 */
export function createRouteTable(
  routes: readonly Route[],
  onEvasion: () => void = () => undefined,
): RouteTable {
  for (const { require } of routes) if (require !== undefined) compileRequirements(require);
  const rows = bySpecificity(routes).map((route) => ({ route, fits: matcher(route) }));
  return (request) => {
    let passedOver: Route[] | undefined;
    for (const { route, fits } of rows) {
      const fit = fits(request);
      if (fit === false) continue;
      if (fit === true) {
        if (passedOver?.some((stricter) => isWeaker(route, stricter)) === true) onEvasion();
        return route;
      }
      (passedOver ??= []).push(route);
    }
    return undefined;
  };
}

/**
 * `otherwise` if only another reading of the headers fits. A request without `Host`, as HTTP/1.0 allows, reaches the backend with
 * the target's name, which any route may name.
 */
type Matcher = (request: RouteQuery) => boolean | "otherwise";

function matcher(route: Route): Matcher {
  const path = pathMatcher(route);
  const methods = route.methods === undefined ? undefined : new Set(route.methods);
  const host = route.hosts === undefined ? undefined : hostMatcher(route.hosts);
  const headers = route.headers?.map(([name, value]) => comparedHeader(name, value));
  return (request) =>
    path(request.matchPath) &&
    (methods === undefined || methods.has(request.method)) &&
    (host === undefined || request.host === "" || host(request.host)) &&
    fitOf(host !== undefined && request.host === "", request.rawHeaders ?? [], headers);
}

function fitOf(
  lacksHost: boolean,
  rawHeaders: readonly string[],
  headers: readonly ComparedHeader[] | undefined,
): boolean | "otherwise" {
  const have = headers === undefined || haveHeaders(rawHeaders, headers);
  return have === true && lacksHost ? "otherwise" : have;
}

function haveHeaders(
  rawHeaders: readonly string[],
  headers: readonly ComparedHeader[],
): boolean | "otherwise" {
  let all: boolean | "otherwise" = true;
  for (const header of headers) {
    const has = hasHeader(rawHeaders, header);
    if (has === false) return false;
    if (has === "otherwise") all = has;
  }
  return all;
}

/** A prefix ends on a segment boundary: `/docs` and `/docs/` both match `/docs/a`, neither matches `/docsx`. */
function pathMatcher(route: Route): (path: string) => boolean {
  if ("exact" in route.path) {
    const { exact } = route.path;
    return (path) => path === exact;
  }
  if ("regex" in route.path) {
    const { automaton } = route.path.regex;
    return (path) => automaton.matches(path);
  }
  const { prefix } = route.path;
  if (prefix === "/") return () => true;
  if (prefix.endsWith("/")) return (path) => path.startsWith(prefix);
  const inside = `${prefix}/`;
  return (path) => path === prefix || path.startsWith(inside);
}

/** Returns a test for names of hosts. @param hosts names, and `*.` with a domain for exactly one more label. */
export function hostMatcher(hosts: readonly string[]): (host: string) => boolean {
  const exact = new Set(hosts.filter((host) => !host.startsWith("*.")));
  const suffixes = new Set(hosts.filter((host) => host.startsWith("*.")).map((h) => h.slice(1)));
  return (host) => {
    if (exact.has(host)) return true;
    const dot = host.indexOf(".");
    return dot > 0 && suffixes.has(host.slice(dot));
  };
}
