import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Route } from "../../core/request/route.ts";

/**
 * Returns the path for the backend: the canonical path with the route's prefix stripped and another added. The prefix
 * is compared as routes are: in the path with allowed characters decoded.
 */
export function rewritePath(
  route: Route,
  { path, matchPath }: Pick<GateRequest, "path" | "matchPath">,
): string {
  const { stripPrefix = "", addPrefix = "" } = route.rewrite ?? {};
  const strip = stripPrefix.replace(/\/$/, "");
  const inside = strip !== "" && (matchPath === strip || matchPath.startsWith(`${strip}/`));
  const rest = inside ? path.slice(spelledLength(path, matchPath, strip.length)) : path;
  const add = addPrefix.replace(/\/$/, "");
  return `${add}${rest.startsWith("/") ? rest : `/${rest}`}`;
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
