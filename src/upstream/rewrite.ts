import type { GateRequest } from "../core/gate-request.ts";
import type { Route } from "../core/route.ts";

/**
 * The path that the backend gets: the canonical path with the route's prefix taken off and another put before it. The
 * prefix is looked for where routes are: in the path with the allowed characters decoded.
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

/** How long the first `length` characters of `matchPath` are as they are spelled in `path`: `%40` stands for one. */
function spelledLength(path: string, matchPath: string, length: number): number {
  if (path === matchPath) return length;
  let at = 0;
  for (let matched = 0; matched < length; matched++) {
    at += path[at] === matchPath[matched] ? 1 : "%40".length;
  }
  return at;
}
