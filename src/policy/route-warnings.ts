import { beginningOf, type Route, type RouteQuery } from "../core/route/route.ts";
import { accessPolicyWords, isWeaker, knowsCallers } from "./authorize.ts";
import { bySpecificity, createRouteTable, type RouteTable } from "./route-table.ts";
import { commonText } from "../lib/automaton/automaton.ts";
import { ExpressionError } from "../lib/automaton/expression.ts";
import { automatonOf, canonicalPaths, mayOverlap } from "./path-automata.ts";

/** A request similar to those of a protected route matches one that admits callers without a token. */
interface RouteWarning {
  /** The protected route. */
  readonly route: string;
  readonly message: string;
  readonly hint: string;
}

/** Represents every host that no route names (RFC 6761 §6.4). */
const ANOTHER_HOST = "another.invalid";

/**
 * Warns about pairs of routes with at least one regular expression, if the first takes a request that the second would
 * match next, and admits callers whom the second would refuse. The search is exact: it compares all paths of the two.
 */
export function expressionWarnings(routes: readonly Route[]): RouteWarning[] {
  if (!routes.some(({ path }) => "regex" in path)) return [];
  const rows = bySpecificity(routes);
  const seen = new Set<string>();
  return rows.flatMap((taker, at) =>
    rows.slice(at + 1).flatMap((loser, distance) => {
      const pair = `${taker.name} ${loser.name}`;
      if (seen.has(pair) || !mayOpen(taker, loser)) return [];
      const others = [...rows.slice(0, at), ...rows.slice(at + 1, at + 1 + distance)];
      const found = overlapOf(taker, loser, others);
      if (found === undefined) return [];
      seen.add(pair);
      return [warningOf(taker, loser, found)];
    }),
  );
}

function mayOpen(taker: Route, loser: Route): boolean {
  if (taker.name === loser.name || !isWeaker(taker, loser)) return false;
  return ("regex" in taker.path || "regex" in loser.path) && mayOverlap(taker.path, loser.path);
}

function warningOf(taker: Route, loser: Route, found: string | RouteQuery): RouteWarning {
  const hint =
    "regex" in taker.path
      ? "narrow the regex, or require the same in both"
      : `the rank of a regex is the length of the prefix of all its paths, here ${beginningOf(loser.path)}: require the same in both, or begin it with ${beginningOf(taker.path)}`;
  const needs = `by the route ${taker.name}, which is ${demand(taker)}`;
  const message =
    typeof found === "string"
      ? `${found} ${needs}`
      : `${found.method} ${found.host === ANOTHER_HOST ? "" : found.host}${found.matchPath} is taken ${needs}`;
  return { route: loser.name, message, hint };
}

function demand(route: Route): string {
  const words = accessPolicyWords(route);
  return words.startsWith("public") ? words : `open to a ${words}`;
}

/**
 * Returns a request that two routes match, and no other route before the second one; undefined if there is none, or a
 * message if there may be one.
 */
function overlapOf(
  taker: Route,
  loser: Route,
  others: readonly Route[],
): RouteQuery | string | undefined {
  try {
    for (const asked of requestsOf([taker, loser])) {
      const matchPath = commonPath(taker, loser, others, asked);
      if (matchPath !== undefined) return { ...asked, matchPath };
    }
    return undefined;
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return "some path may be taken";
  }
}

/** Yields a request, without its path, for each combination of hosts and methods of two routes. */
function* requestsOf(both: readonly Route[]): Generator<RouteQuery> {
  const hosts = both.flatMap((route) => route.hosts ?? []).map((host) => host.replace("*", "any"));
  const methods = new Set(both.flatMap((route) => route.methods ?? []));
  const fields = new Map(both.flatMap(({ headers = [] }) => headers));
  const rawHeaders = [...fields].flat();
  for (const host of new Set([...hosts, ANOTHER_HOST])) {
    for (const method of methods.size > 0 ? methods : ["GET"]) {
      const asked = { host, method, rawHeaders, matchPath: "/" };
      if (both.every((route) => fitsBesidesPath(route, asked))) yield asked;
    }
  }
}

/** Returns a path that both routes and none of the others match. */
function commonPath(
  { path: taker, paths }: Route,
  { path: loser }: Route,
  among: readonly Route[],
  asked: RouteQuery,
): string | undefined {
  const both = [canonicalPaths(paths ?? "strict"), automatonOf(taker), automatonOf(loser)];
  const needed = [0, 1, 2];
  const common = commonText(both, { needed, wanted: () => true });
  if (common === undefined) return undefined;
  const others = among
    .filter(({ path }) => mayOverlap(path, taker) && mayOverlap(path, loser))
    .filter((route) => fitsBesidesPath(route, asked))
    .map(({ path }) => automatonOf(path));
  if (others.every((automaton) => !automaton.matches(common))) return common;
  return commonText([...both, ...others], {
    needed,
    wanted: (matching) => !matching.includes(true, needed.length),
  });
}

/** Whether a route matches a request, ignoring the path. */
export function fitsBesidesPath(route: Route, asked: RouteQuery): boolean {
  return createRouteTable([{ ...route, path: { prefix: "/" } }])(asked) !== undefined;
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/**
 * Looks for common oversights near a protected route, through which a request matches an open route instead: the path
 * with or without a trailing slash, unlisted methods, the path in another case, other hosts, headers. The route table
 * itself decides which route matches. Includes the warnings about regular expressions.
 */
export function routeWarnings(routes: readonly Route[]): RouteWarning[] {
  const findRoute = createRouteTable(routes);
  const gaps = routes
    .filter(({ auth }) => knowsCallers(auth))
    .flatMap((route) => [
      ...slashWarnings(route, findRoute),
      ...methodWarnings(route, findRoute),
      ...caseWarnings(route, findRoute),
      ...hostWarnings(route, findRoute),
      ...headerWarnings(route, findRoute, routes),
      ...conditionWarnings(route, findRoute),
    ]);
  return [...gaps, ...hiddenRoutes(routes, findRoute), ...expressionWarnings(routes)];
}

/**
 * Warns if a backend cannot distinguish callers with the same name from different issuers.
 *
 * @param issuers all issuers whose tokens are accepted.
 * @param header the header that tells the backend the issuer; undefined if there is none.
 */
export function issuerWarning(
  issuers: readonly string[],
  header: string | undefined,
): Omit<RouteWarning, "route"> | undefined {
  const [one, another] = issuers;
  if (header !== undefined || one === undefined || another === undefined) return undefined;
  return {
    message: `the backend does not learn the issuer: it cannot distinguish equal names from ${one} and ${another}`,
    hint: "send the issuer in a header: identity.headers: { subject: …, groups: …, issuer: … }",
  };
}

/**
 * Warns about a route without `hosts` that never matches under a host which another route names, although its path is
 * more specific: hosts are compared before paths.
 */
function hiddenRoutes(routes: readonly Route[], findRoute: RouteTable): RouteWarning[] {
  const hosts = new Set(routes.flatMap((route) => route.hosts ?? []));
  return routes.flatMap((route) => {
    if (route.hosts !== undefined) return [];
    const asked = sampleRequest(route);
    const taken = [...hosts].flatMap((name) => {
      const taker = findRoute({ ...asked, host: name.replace("*", "any") });
      if (taker?.hosts === undefined || !hides(taker, route)) return [];
      return [`${name}, where ${taker.name} comes first`];
    });
    if (taken.length === 0) return [];
    const message = `never matches for ${taken.join(", and for ")}`;
    const hint = "hosts count before paths: name the host in its hosts, too, if it is meant there";
    return [{ route: route.name, message, hint }];
  });
}

/** Whether a route takes every request of one with a longer path. */
function hides({ path, methods, headers }: Route, route: Route): boolean {
  if (!("prefix" in path) || methods !== undefined || headers !== undefined) return false;
  return path.prefix.length < beginningOf(route.path).length;
}

/** Returns a request that matches the route. */
function sampleRequest({ hosts, methods, path, headers }: Route): RouteQuery {
  const host = hosts?.[0]?.replace("*", "any") ?? ANOTHER_HOST;
  const matchPath = "regex" in path ? path.regex.sample : beginningOf(path);
  const rawHeaders = headers?.flat() ?? [];
  return { host, matchPath, method: methods?.[0] ?? "GET", rawHeaders };
}

/**
 * Returns `public through the route NAME` if the request matches a route that admits callers without a token, while the
 * given route would refuse them.
 */
function openThrough(
  findRoute: RouteTable,
  asked: RouteQuery,
  { mode }: Route,
): string | undefined {
  const taker = findRoute(asked);
  if (taker?.auth === "none") return `public through the route ${taker.name}`;
  if (taker?.auth === "optional") return `open without a token through the route ${taker.name}`;
  const watched = taker?.mode === "monitor" && mode !== "monitor";
  return watched ? `open through the route ${taker.name}, in monitor mode` : undefined;
}

function slashWarnings(route: Route, findRoute: RouteTable): RouteWarning[] {
  const asked = sampleRequest(route);
  const { matchPath } = asked;
  if (matchPath === "/") return [];
  const other = matchPath.endsWith("/") ? matchPath.slice(0, -1) : `${matchPath}/`;
  const taker = openThrough(findRoute, { ...asked, matchPath: other }, route);
  if (taker === undefined) return [];
  const hint =
    "exact" in route.path
      ? "use path instead of exact: a prefix matches both"
      : "regex" in route.path
        ? "end the regex with /? to match both"
        : `remove the trailing slash of the prefix: path: ${other}`;
  return [{ route: route.name, message: `${other} is ${taker}`, hint }];
}

function methodWarnings(route: Route, findRoute: RouteTable): RouteWarning[] {
  const { methods } = route;
  if (methods === undefined) return [];
  const asked = sampleRequest(route);
  const open = METHODS.filter((method) => !methods.includes(method)).flatMap((method) => {
    const taker = openThrough(findRoute, { ...asked, method }, route);
    return taker === undefined ? [] : [{ method, taker }];
  });
  const [first] = open;
  if (first === undefined) return [];
  const words = open.map(({ method }) => method).join(", ");
  const message = `${words} of ${asked.matchPath} is ${first.taker}`;
  const hint = methods.includes("GET")
    ? "add HEAD to GET, or omit methods"
    : "omit methods, or protect the others, too";
  return [{ route: route.name, message, hint }];
}

function caseWarnings(route: Route, findRoute: RouteTable): RouteWarning[] {
  const asked = sampleRequest(route);
  const { matchPath } = asked;
  const variant = [matchPath.toUpperCase(), matchPath.toLowerCase()].find(
    (other) => other !== matchPath,
  );
  if (variant === undefined) return [];
  const taker = openThrough(findRoute, { ...asked, matchPath: variant }, route);
  if (taker === undefined) return [];
  const message = `${variant} is ${taker}`;
  const hint = "a case-insensitive backend would serve it";
  return [{ route: route.name, message, hint }];
}

/** Warns about open routes that match only with a header: a client that sends the header needs no token. */
function headerWarnings(
  route: Route,
  findRoute: RouteTable,
  routes: readonly Route[],
): RouteWarning[] {
  const asked = sampleRequest(route);
  const opened = routes.flatMap(({ headers }) => {
    if (headers === undefined) return [];
    const taker = openThrough(findRoute, { ...asked, rawHeaders: headers.flat() }, route);
    return taker === undefined ? [] : [{ taker, name: headers[0]?.[0] ?? "" }];
  });
  const [first] = opened;
  if (first === undefined) return [];
  const message = `${asked.matchPath} is ${first.taker} with the header ${first.name}`;
  return [
    { route: route.name, message, hint: "clients choose their headers: require the same in both" },
  ];
}

/**
 * Warns about a route by headers that is stricter than the route of requests without them, to the same upstream: a backend may
 * act on another value than the one compared, such as `1` for `true`.
 */
function conditionWarnings(route: Route, findRoute: RouteTable): RouteWarning[] {
  const { headers } = route;
  if (headers === undefined) return [];
  const asked = sampleRequest(route);
  const taker = findRoute({ ...asked, rawHeaders: [] });
  if (taker?.upstream !== route.upstream || !isWeaker(taker, route)) return [];
  const names = headers.map(([name]) => name).join(" and ");
  const message = `${asked.matchPath} without the header ${names} needs less, by the route ${taker.name}`;
  const hint =
    "clients choose their headers: require the same in both, unless the backend ignores the header";
  return [{ route: route.name, message, hint }];
}

function hostWarnings(route: Route, findRoute: RouteTable): RouteWarning[] {
  if (route.hosts === undefined) return [];
  const asked = { ...sampleRequest(route), host: ANOTHER_HOST };
  const taker = openThrough(findRoute, asked, route);
  if (taker === undefined) return [];
  const message = `${asked.matchPath} is ${taker} under any other host`;
  return [{ route: route.name, message, hint: "clients choose the Host: omit hosts" }];
}
