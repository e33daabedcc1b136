import { beginningOf, type Route, type RouteQuery } from "../core/route/route.ts";
import { isWeaker } from "./authorize.ts";
import { expressionWarnings } from "./expression-warnings.ts";
import { ANOTHER_HOST, type RouteWarning } from "./route-warning.ts";
import { createRouteTable, type RouteTable } from "./route-table.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/**
 * Looks for common oversights near a protected route, through which a request matches an open route instead: the path
 * with or without a trailing slash, unlisted methods, the path in another case, other hosts, headers. The route table
 * itself decides which route matches. Includes the warnings about regular expressions.
 */
export function routeWarnings(routes: readonly Route[]): RouteWarning[] {
  const findRoute = createRouteTable(routes);
  const gaps = routes
    .filter(({ auth }) => auth === "required")
    .flatMap((route) => [
      ...slashWarnings(route, findRoute),
      ...methodWarnings(route, findRoute),
      ...caseWarnings(route, findRoute),
      ...hostWarnings(route, findRoute),
      ...headerWarnings(route, findRoute, routes),
      ...conditionWarnings(route, findRoute),
    ]);
  return [...gaps, ...expressionWarnings(routes)];
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
