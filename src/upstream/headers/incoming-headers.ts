import type { IncomingHttpHeaders } from "node:http";
import type { OutgoingResponse } from "../../core/request/http-message.ts";
import type { Permit } from "../../core/request/permit.ts";
import { CONNECTION_FIELDS } from "../../lib/http/header-values.ts";
import { lowerCase } from "../../lib/text/by-name.ts";
import type { TargetOrigin } from "../pool/target-origin.ts";
import { backendHost, prefixesOf } from "./rewrite.ts";
import type { TokenPlace } from "../../core/request/token-place.ts";
import type { Route } from "../../core/route/route.ts";

/** Directives with which a backend controls whether shared caches may store a response (RFC 9111 §3.5). */
const DECIDED = /(?:^|[\s,])(?:private|no-store|public|s-maxage|must-revalidate)(?=$|[\s,=])/i;

/**
 * Keeps responses to authenticated callers out of shared caches. Caches do not store the response to a request with
 * `Authorization` unless a directive allows it (RFC 9111 §3.5), but they cannot know that another header, a cookie or a
 * query contains a token (RFC 6750 §2.3). If a token is optional, the response varies with it. There is nothing to do on a
 * route without `tokenFrom` that requires a token. Nothing in a request shows a certificate. If a token may be in the query, tells browsers to send no `Referer`.
 *
 * @param fields names and values, alternating; the names in lower case. Changed in place.
 */
function keepPrivate(fields: string[], { route, identity, request }: Permit): void {
  const { tokenFrom } = route;
  if (tokenFrom !== undefined && tokenFrom.queries.length > 0) hideReferrer(fields);
  const varying = route.auth === "optional" ? variesWith(tokenFrom?.list ?? []) : "";
  if (varying !== "") fields.push("vary", varying);
  const isKnown = request.authorization !== undefined;
  const isHidden = route.auth === "certificate" || tokenFrom?.hiddenFromCaches === true;
  if (identity === undefined || isKnown || !isHidden) return;
  const decided = fields.some(
    (name, at) => at % 2 === 0 && name === "cache-control" && DECIDED.test(fields[at + 1] ?? ""),
  );
  if (!decided) fields.push("cache-control", "private");
}

/** Where a request need not show that its caller is known. */
const OFTEN_UNSEEN: ReadonlySet<string> = new Set(["optional", "certificate"]);

/** The browser would repeat the URL, with its token, to every server from which the page loads something. */
function hideReferrer(fields: string[]): void {
  const decided = fields.some((name, at) => at % 2 === 0 && name === "referrer-policy");
  if (!decided) fields.push("referrer-policy", "no-referrer");
}

function variesWith(places: readonly TokenPlace[]): string {
  const headers = places.flatMap((place) =>
    "header" in place ? [place.header] : "apiKey" in place ? [place.apiKey] : [],
  );
  const cookie = places.some((place) => "cookie" in place) ? ["Cookie"] : [];
  const names = places.length === 0 ? ["Authorization"] : [...headers, ...cookie];
  return names.join(", ");
}

/** A reference with an authority, its path, and the rest: `https://host/path?query`, `//host/path`. */
const WITH_AUTHORITY = /^(?:https?:)?\/\/([^/?#\\]*)([^?#]*)(.*)$/is;
const PATH_ONLY = /^(\/[^?#]*)(.*)$/s;
/** The value of `Refresh`, `5; url="/next"`: the part before the reference, which may be in quotes, and the rest. */
const REFRESH = /^(\s*(?:(?:\d+(?:\.\d*)?|\.\d*)\s*)?[;,]\s*(?:url\s*=\s*)?)(.*)$/is;
const COOKIE_PATH = /(;\s*path\s*=\s*)(\/[^;]*)/i;

/**
 * Maps `Location`, `Content-Location`, `Refresh` and the paths of cookies from the backend's addresses to the client's:
 * the reverse of `rewritePath`. Addresses of other hosts stay unchanged, and so do paths that this route cannot reach.
 *
 * @param headers names in lower case; changed in place.
 * @param hosts the names of the backend: the `Host` that it got, and the target's own address.
 */
export function mapAnswerBack(
  headers: IncomingHttpHeaders,
  permit: Permit,
  hosts: readonly string[],
): void {
  const { refresh } = headers;
  const cookies = headers["set-cookie"];
  for (const name of ["location", "content-location"]) {
    const reference = headers[name];
    if (typeof reference === "string") headers[name] = mappedReference(reference, permit, hosts);
  }
  if (typeof refresh === "string") headers["refresh"] = mappedRefresh(refresh, permit, hosts);
  // A single field is a string.
  if (cookies !== undefined) {
    headers["set-cookie"] = [cookies].flat().map((cookie) => mappedCookie(cookie, permit.route));
  }
}

function mappedRefresh(refresh: string, permit: Permit, hosts: readonly string[]): string {
  const [, before, rest = ""] = REFRESH.exec(refresh) ?? [];
  if (before === undefined) return refresh;
  const written = rest.trimEnd();
  const [first = ""] = written;
  const isQuoted = written.length > 1 && /["']/.test(first) && written.endsWith(first);
  const url = isQuoted ? written.slice(1, -1) : written;
  const quote = isQuoted ? first : "";
  const blanks = rest.slice(written.length);
  return `${before}${quote}${mappedReference(url, permit, hosts)}${quote}${blanks}`;
}

function mappedReference(
  reference: string,
  { route, request }: Permit,
  hosts: readonly string[],
): string {
  const absolute = WITH_AUTHORITY.exec(reference);
  if (absolute !== null) {
    const [, authority = "", path = "", rest = ""] = absolute;
    const host = hosts.find((each) => each.toLowerCase() === authority.toLowerCase());
    if (host === undefined) return reference;
    const mapped = mappedPath(path === "" ? "/" : path, route);
    if (mapped === undefined) return reference;
    // If it names the client's own host, scheme and host stay, too. Otherwise only the client knows the address at which
    // it reached this proxy, so the reference becomes relative.
    return host === request.authority
      ? `${reference.slice(0, reference.length - path.length - rest.length)}${mapped}${rest}`
      : `${mapped}${rest}`;
  }
  const [, path = "", rest = ""] = PATH_ONLY.exec(reference) ?? [];
  const mapped = path === "" ? undefined : mappedPath(path, route);
  return mapped === undefined ? reference : `${mapped}${rest}`;
}

/** Returns the client's path for a path of the backend; undefined if it has none, or if it would name another host. */
function mappedPath(path: string, { rewrite }: Route): string | undefined {
  const { strip, add } = prefixesOf(rewrite);
  if (!isWithin(path, add)) return undefined;
  // A backend that reads `X-Forwarded-Prefix` has already prepended it.
  if (strip !== "" && add === "" && isWithin(path, strip) && rewrite?.responses !== true) {
    return path;
  }
  const mapped = `${strip}${path.slice(add.length)}` || "/";
  // Browsers remove tabs from URLs.
  return /^\/\t*[/\\]/.test(mapped) ? undefined : mapped;
}

function isWithin(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}

/** Maps the path of a cookie. A path at or above the added prefix covers everything that this route exposes. */
function mappedCookie(cookie: string, route: Route): string {
  return cookie.replace(COOKIE_PATH, (all, name: string, written: string) => {
    const path = written.trimEnd();
    const { strip, add } = prefixesOf(route.rewrite);
    const above = add === path || add.startsWith(path.endsWith("/") ? path : `${path}/`);
    if (path === "/" || above) return `${name}${strip || "/"}`;
    const mapped = mappedPath(path, route);
    return mapped === undefined ? all : `${name}${mapped}`;
  });
}

/** Fields by name. It inherits no property, so every name can only refer to a field. */
class Fields {
  [name: string]: string | string[] | undefined;
}
Reflect.deleteProperty(Fields.prototype, "constructor");
Object.setPrototypeOf(Fields.prototype, null);

/** Returns fields by lower-case name, repeated ones as a list. @param from the index of the first name. */
export function headersOf(fields: readonly string[], from = 0): IncomingHttpHeaders {
  const headers = new Fields();
  for (let i = from; i + 1 < fields.length; i += 2) {
    const name = lowerCase(fields[i] ?? "");
    const value = fields[i + 1] ?? "";
    const before = headers[name];
    if (before === undefined) headers[name] = value;
    else if (Array.isArray(before)) before.push(value);
    else headers[name] = [before, value];
  }
  return headers;
}

/** Hop-by-hop fields (RFC 9110 §7.6.1); Node frames the message towards the client. */
const DROPPED = new Set([
  ...CONNECTION_FIELDS,
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-authentication-info",
  "x-request-id",
]);

const ABOUT_BODY = new Set([...DROPPED, "content-length", "trailer"]);

/** By status: an interim response has no fields about a body (RFC 8297 §2), a 204 no length (RFC 9110 §8.6). */
const DROPPED_FROM: Readonly<Record<number, ReadonlySet<string>>> = {
  101: ABOUT_BODY,
  103: ABOUT_BODY,
  204: new Set([...DROPPED, "content-length"]),
};

/**
 * Fields that affect routing, authorization, caching or framing. A recipient that merges trailers into the header
 * section would let them change that afterwards (RFC 9110 §6.5.1).
 */
export const FORBIDDEN_TRAILERS =
  /^(?:age|authorization|authentication-info|cache-control|content-.*|cookie|date|expect|expires|host|if-.*|location|max-forwards|pragma|proxy-.*|range|retry-after|set-cookie|te|trailer|transfer-encoding|vary|warning|www-authenticate)$/i;

/**
 * Creates the header section for the client from the backend's: that of `responseHeaders`, with addresses mapped back and
 * the route's changes applied.
 *
 * @param headers names in lower case; mapped in place.
 * @param origin of the target that answered.
 * @param cors our own CORS fields, for an answer without any.
 * @returns names and values, alternating.
 */
export function clientFields(
  headers: IncomingHttpHeaders,
  permit: Permit,
  status: number,
  origin: TargetOrigin | undefined,
  cors?: readonly string[],
): string[] {
  const { route, request } = permit;
  if (route.mapsAnswers === true && origin !== undefined) {
    mapAnswerBack(headers, permit, [backendHost(permit, origin), origin.authority]);
  }
  const fields = responseHeaders(headers, status);
  fields.push("X-Request-Id", request.requestId);
  if (cors !== undefined) addCors(fields, headers, cors);
  if (route.tokenFrom !== undefined || OFTEN_UNSEEN.has(route.auth)) keepPrivate(fields, permit);
  const { responseHeaders: changes } = route;
  return changes === undefined ? fields : changes.modify(fields, permit);
}

/** Adds our own CORS fields, unless the backend sent some. Several `Vary` fields form one list. */
function addCors(fields: string[], headers: IncomingHttpHeaders, cors: readonly string[]): void {
  if (headers["access-control-allow-origin"] !== undefined) return;
  for (let i = 0; i + 1 < cors.length; i += 2) {
    const [name = "", value = ""] = [cors[i], cors[i + 1]];
    if (name === "Vary" || headers[name.toLowerCase()] === undefined) fields.push(name, value);
  }
}

/**
 * Creates the header section for the client from the backend's, without what ends at this hop.
 *
 * @param headers names in lower case.
 * @returns names and values, alternating.
 */
export function responseHeaders(headers: IncomingHttpHeaders, status: number): string[] {
  const dropped = DROPPED_FROM[status] ?? DROPPED;
  const passed: string[] = [];
  const named = connectionOptions(headers.connection);
  const disposition = headers["content-disposition"];
  // It must come before `Content-Length`: after that, Node encodes it as UTF-8, although each character is a byte.
  if (disposition !== undefined && !named?.has("content-disposition")) {
    append(passed, "content-disposition", disposition);
  }
  for (const name of Object.keys(headers)) {
    if (dropped.has(name) || named?.has(name) || name === "content-disposition") continue;
    append(passed, name, headers[name]);
  }
  return passed;
}

function append(fields: string[], name: string, value: string | string[] | undefined): void {
  if (typeof value === "string") fields.push(name, value);
  else for (const each of value ?? []) fields.push(name, each);
}

/** Returns the trailers except those that would change how the message is interpreted (RFC 9110 §6.5.1). */
export function responseTrailers(trailers: IncomingHttpHeaders): [string, string][] {
  const passed: [string, string][] = [];
  for (const name of Object.keys(trailers)) {
    if (DROPPED.has(name) || FORBIDDEN_TRAILERS.test(name)) continue;
    const value = trailers[name];
    for (const each of typeof value === "string" ? [value] : (value ?? []))
      passed.push([name, each]);
  }
  return passed;
}

function connectionOptions(value: string | string[] | undefined): ReadonlySet<string> | undefined {
  if (value === undefined || value === "keep-alive" || value === "close") return undefined;
  const options = [value].flat().join(",").toLowerCase().split(",");
  return new Set(options.map((option) => option.trim()));
}

/** A reason phrase without control characters, which Node refuses to write (RFC 9112 §4). */
const REASON_PHRASE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Whether Node can write the response and the client will read what the backend meant: a valid status, not both
 * `Trailer` and `Content-Length`, and no transfer coding except `chunked`, which is decoded here.
 */
export function isPassable(
  status: number,
  statusMessage: string,
  headers: IncomingHttpHeaders,
): boolean {
  const coding = headers["transfer-encoding"];
  return (
    status <= 599 &&
    REASON_PHRASE.test(statusMessage) &&
    (headers["trailer"] === undefined || headers["content-length"] === undefined) &&
    (coding === undefined || coding.toLowerCase() === "chunked")
  );
}

/**
 * Whether a response may announce trailers: only a chunked body has them, and Node throws otherwise (RFC 9112
 * §7.1.2).
 */
export function mayEndWithTrailers({ req }: OutgoingResponse, status: number): boolean {
  return req.httpVersion !== "1.0" && req.method !== "HEAD" && status !== 204 && status !== 304;
}
