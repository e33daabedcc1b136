import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Route } from "../../core/route/route.ts";

/**
 * Returns the path for the backend: the canonical path with the route's prefix stripped and another added. The prefix
 * is compared as routes are: in the path with allowed characters decoded.
 */
export function rewritePath(
  route: Route,
  { path, matchPath }: Pick<GateRequest, "path" | "matchPath">,
): string {
  const { addPrefix = "" } = route.rewrite ?? {};
  const strip = strippedPrefix(route, { matchPath });
  const rest = strip === "" ? path : path.slice(spelledLength(path, matchPath, strip.length));
  const add = addPrefix.replace(/\/$/, "");
  return `${add}${rest.startsWith("/") ? rest : `/${rest}`}`;
}

/** Returns the prefix that the route strips from the path of a request; empty if it strips none. */
export function strippedPrefix(
  { rewrite }: Pick<Route, "rewrite">,
  { matchPath }: Pick<GateRequest, "matchPath">,
): string {
  const strip = (rewrite?.stripPrefix ?? "").replace(/\/$/, "");
  return matchPath === strip || matchPath.startsWith(`${strip}/`) ? strip : "";
}

/**
 * Returns how long the first `length` characters of `matchPath` are in `path`, where `%40` stands for one character.
 */
function spelledLength(path: string, matchPath: string, length: number): number {
  if (path === matchPath) return length;
  let at = 0;
  for (let matched = 0; matched < length; matched += 1) {
    at += path[at] === matchPath[matched] ? 1 : "%40".length;
  }
  return at;
}
