import { unescape } from "node:querystring";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { Route } from "../../core/route/route.ts";
import { withoutEnd } from "../../lib/http/path/canonical-path.ts";
import type { TargetOrigin } from "../pool/target-origin.ts";
import type { TokenPlaces } from "../../core/request/token-place.ts";
import { headerValues, withoutQueryFields } from "../../lib/http/header-values.ts";
import { BEARER_PROTOCOL, offeredProtocols } from "../../lib/http/websocket-bearer.ts";
import { comesFromProxies } from "./header-names.ts";

const PROTOCOLS = "sec-websocket-protocol";

/** Returns the query for the backend: the client's, without tokens. */
export function forwardedQuery({ route, request }: Permit): string {
  const names = route.tokenFrom?.for(request).queries ?? [];
  return names.length === 0 || request.query === ""
    ? request.query
    : withoutQueryFields(request.query, names);
}

/**
 * Removes tokens from the header fields in which the route looks for them; the rest of their values stays
 * unchanged.
 *
 * @param fields names and values, alternating.
 * @returns the same list if none of them may hold a token.
 */
export function withoutTokens(fields: string[], places: TokenPlaces): string[] {
  for (let i = 0; i < fields.length; i += 2) {
    if (places.hides(fields[i] ?? "") !== undefined) return removed(fields, places);
  }
  return fields;
}

/** Headers in which browsers and libraries repeat the URL of a page (`Ping-From`: HTML, hyperlink auditing). */
const URL_HEADERS: ReadonlySet<string> = new Set([
  "referer",
  "ping-from",
  "ping-to",
  "hx-current-url",
  "turbolinks-referrer",
  "next-url",
]);

/** Whether a header may repeat a URL with its query. @param folded a `foldedName`. */
export function repeatsUrl(folded: string): boolean {
  return URL_HEADERS.has(folded) || comesFromProxies(folded);
}

/** Where the query of a URL begins, perhaps of one that was encoded, once or twice, to be part of another. */
const BEGINNING_OF_QUERY = /\?|%(?:25)?3f/i;

/**
 * Removes query fields from a text that is a URL or contains some, such as `Referer`. If one is in an encoded URL within
 * the query, removes the whole query.
 */
export function withoutTokensInUrl(text: string, names: readonly string[]): string {
  const begin = text.search(BEGINNING_OF_QUERY);
  if (begin === -1) return text;
  const left = withoutFieldsIn(text, names);
  const plain = unescape(unescape(left));
  return withoutFieldsIn(plain, names) === plain ? left : left.slice(0, begin);
}

/** Every `?` may begin a query: some proxies join several URLs. Most of thousands of `?` begin none that can hold a name. */
function withoutFieldsIn(text: string, names: readonly string[]): string {
  const [path = "", ...queries] = text.split("?");
  const shortest = Math.min(...names.map(({ length }) => length));
  const left = queries.map((query) =>
    query.length < shortest ? `?${query}` : withoutQueryFields(`?${query}`, names),
  );
  return path + left.join("");
}

/** Removes tokens in place. */
function removed(fields: string[], places: TokenPlaces): string[] {
  let kept = 0;
  let offers: string | undefined;
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? "";
    let value: string | undefined = fields[i + 1] ?? "";
    const hidden = places.hides(name);
    if (hidden === "protocols") offers = offers === undefined ? value : `${offers},${value}`;
    if (hidden === "cookies") value = places.withoutTokens(value);
    else if (hidden !== undefined) value = undefined;
    if (value === undefined) continue;
    fields[kept] = name;
    fields[kept + 1] = value;
    kept += 2;
  }
  fields.length = kept;
  if (offers === undefined) return fields;
  const { others } = offeredProtocols(offers);
  if (others.length > 0) fields.push("Sec-WebSocket-Protocol", others.join(", "));
  return fields;
}

/**
 * The subprotocol to select if the backend selected none: a browser that has offered `bearer` fails without a
 * selection. Undefined if the token came in another place.
 */
export function answeredProtocol({ route, request }: Permit): string | undefined {
  if (route.tokenFrom?.for(request).websocketProtocol !== true) return undefined;
  const list = headerValues(request.rawHeaders, PROTOCOLS).join(",");
  return offeredProtocols(list).bearer ? BEARER_PROTOCOL : undefined;
}

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

/** Returns the prefixes of a route, without a slash at the end; empty if there is none. */
export function prefixesOf(rewrite: Route["rewrite"]) {
  const { stripPrefix = "", addPrefix = "" } = rewrite ?? {};
  return { strip: stripPrefix.replace(/\/$/, ""), add: addPrefix.replace(/\/$/, "") };
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
