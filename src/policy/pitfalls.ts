import type { Route } from "../core/route.ts";
import { createRouteTable, type RouteTable } from "./route-table.ts";

/** A request next to a protected route that one takes which refuses nobody: a public one, or one in monitor mode. */
export interface Pitfall {
  /** The protected route. */
  readonly route: string;
  readonly message: string;
  readonly hint: string;
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/** Stands for a host that no route names (RFC 6761 §6.4). */
const ANOTHER_HOST = "another.invalid";

/**
 * Looks for what people overlook when they write a protected route beside a public one: the path without or with its last
 * slash, the methods that are not named, the path in another case, other hosts. The route table itself says who takes it.
 */
export function routePitfalls(routes: readonly Route[]): Pitfall[] {
  const findRoute = createRouteTable(routes);
  return routes
    .filter(({ auth }) => auth === "required")
    .flatMap((route) => [
      ...slashPitfalls(route, findRoute),
      ...methodPitfalls(route, findRoute),
      ...casePitfalls(route, findRoute),
      ...hostPitfalls(route, findRoute),
    ]);
}

/**
 * Looks whether a backend can tell callers apart who have the same name at different issuers.
 *
 * @param issuers all from whom somebody can have a token.
 * @param header tells the backend the issuer; undefined where none does.
 */
export function issuerPitfall(
  issuers: readonly string[],
  header: string | undefined,
): Omit<Pitfall, "route"> | undefined {
  const [one, another] = issuers;
  if (header !== undefined || one === undefined || another === undefined) return undefined;
  return {
    message: `the backend is not told the issuer: a name of ${one} and the same of ${another} are one to it`,
    hint: "name a header for it: identity.headers: { subject: …, groups: …, issuer: … }",
  };
}

type Asked = Parameters<RouteTable>[0];

/** A request that the route would take. */
function takenBy({ hosts, methods, path }: Route): Asked {
  const host = hosts?.[0]?.replace("*", "any") ?? ANOTHER_HOST;
  const matchPath = "exact" in path ? path.exact : path.prefix;
  return { host, matchPath, method: methods?.[0] ?? "GET" };
}

/** `public by the route NAME`, where a request falls to one that refuses nobody, and the route itself would. */
function openBy(findRoute: RouteTable, asked: Asked, { mode }: Route): string | undefined {
  const taker = findRoute(asked);
  if (taker?.auth === "none") return `public by the route ${taker.name}`;
  const watched = taker?.mode === "monitor" && mode !== "monitor";
  return watched ? `open by the route ${taker.name}, in monitor mode` : undefined;
}

function slashPitfalls(route: Route, findRoute: RouteTable): Pitfall[] {
  const asked = takenBy(route);
  const { matchPath } = asked;
  if (matchPath === "/") return [];
  const other = matchPath.endsWith("/") ? matchPath.slice(0, -1) : `${matchPath}/`;
  const taker = openBy(findRoute, { ...asked, matchPath: other }, route);
  if (taker === undefined) return [];
  const hint =
    "exact" in route.path
      ? "write path instead of exact: a prefix takes both"
      : `write the prefix without its last slash, path: ${other}`;
  return [{ route: route.name, message: `${other} is ${taker}`, hint }];
}

function methodPitfalls(route: Route, findRoute: RouteTable): Pitfall[] {
  const { methods } = route;
  if (methods === undefined) return [];
  const asked = takenBy(route);
  const open = METHODS.filter((method) => !methods.includes(method)).flatMap((method) => {
    const taker = openBy(findRoute, { ...asked, method }, route);
    return taker === undefined ? [] : [{ method, taker }];
  });
  const [first] = open;
  if (first === undefined) return [];
  const words = open.map(({ method }) => method).join(", ");
  const message = `${words} of ${asked.matchPath} is ${first.taker}`;
  const hint = methods.includes("GET")
    ? "name HEAD beside GET, or leave methods out"
    : "leave methods out, or protect the others, too";
  return [{ route: route.name, message, hint }];
}

function casePitfalls(route: Route, findRoute: RouteTable): Pitfall[] {
  const asked = takenBy(route);
  const { matchPath } = asked;
  const variant = [matchPath.toUpperCase(), matchPath.toLowerCase()].find(
    (other) => other !== matchPath,
  );
  if (variant === undefined) return [];
  const taker = openBy(findRoute, { ...asked, matchPath: variant }, route);
  if (taker === undefined) return [];
  const message = `${variant} is ${taker}`;
  const hint = "a backend that does not tell upper from lower case serves it all the same";
  return [{ route: route.name, message, hint }];
}

function hostPitfalls(route: Route, findRoute: RouteTable): Pitfall[] {
  if (route.hosts === undefined) return [];
  const asked = { ...takenBy(route), host: ANOTHER_HOST };
  const taker = openBy(findRoute, asked, route);
  if (taker === undefined) return [];
  const message = `${asked.matchPath} is ${taker} under any other host`;
  return [{ route: route.name, message, hint: "a client chooses the Host: leave hosts out" }];
}
