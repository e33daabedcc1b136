import type { Route } from "../core/route.ts";

/** The path that the backend gets: the canonical path with the route's prefix taken off and another put before it. */
export function rewritePath(route: Route, path: string): string {
  const { stripPrefix = "", addPrefix = "" } = route.rewrite ?? {};
  const strip = stripPrefix.replace(/\/$/, "");
  const inside = strip !== "" && (path === strip || path.startsWith(`${strip}/`));
  const rest = inside ? path.slice(strip.length) : path;
  const add = addPrefix.replace(/\/$/, "");
  return `${add}${rest.startsWith("/") ? rest : `/${rest}`}`;
}
