import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { Route } from "../../core/route/route.ts";
import { withoutEnd } from "../../lib/text/without-end.ts";
import type { TargetOrigin } from "../pool/target-origin.ts";

/**
 * Returns the `Host` for the backend: the client's, the target's, or a fixed one. An HTTP/1.0 client may send none, but a
 * request over HTTP/1.1 must have one (RFC 9112 §3.2): it gets the target's.
 */
export function backendHost({ route, request }: Permit, { authority }: TargetOrigin): string {
  const { hostHeader } = route;
  if (hostHeader === undefined) return request.authority || authority;
  return hostHeader === "target" ? authority : hostHeader.fixed;
}

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
function strippedPrefix(
  { rewrite }: Pick<Route, "rewrite">,
  { matchPath }: Pick<GateRequest, "matchPath">,
): string {
  const strip = (rewrite?.stripPrefix ?? "").replace(/\/$/, "");
  return matchPath === strip || matchPath.startsWith(`${strip}/`) ? strip : "";
}

const PREFIX_HEADER = "X-Forwarded-Prefix";

/** Adds the prefix that the route strips, after any prefix that a trusted proxy has stripped before. */
export function addPrefixHeader(fields: string[], { route, request }: Permit): void {
  const prefix = strippedPrefix(route, request);
  if (prefix === "") return;
  const at = fields.findIndex(
    (name, index) => index % 2 === 0 && name.toLowerCase() === PREFIX_HEADER.toLowerCase(),
  );
  if (at === -1) fields.push(PREFIX_HEADER, prefix);
  else fields[at + 1] = `${withoutEnd(fields[at + 1] ?? "", "/")}${prefix}`;
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
