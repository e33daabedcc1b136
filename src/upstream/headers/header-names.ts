import { CONNECTION_FIELDS, foldedName } from "../../lib/http/header-values.ts";
import { CLIENT_HEADERS, IDENTITY_PRESETS } from "./identity-headers.ts";

/** Headers that are extended if they come from a trusted proxy, and replaced otherwise. */
export const FORWARDED_NAMES: ReadonlySet<string> = new Set([
  "x-forwarded-for",
  "x-forwarded-proto",
  "x-forwarded-host",
  "x-forwarded-port",
  "forwarded",
  "x-real-ip",
]);

/** Headers in which proxies report the original request and its client: they name several by the same words. */
const PROXY_FAMILIES = [
  /^x-(?:forwarded|original|envoy-original|rewrite)(?:-|$)/,
  // The client's address.
  /^forwarded-for$|(?:^|-)(?:client|connecting|remote|originating|real)-ip(?:v6)?$/,
  /^(?:x-azure-(?:client|socket)ip|x-envoy-external-address|cloudfront-viewer-address)$/,
  /^x-appengine-(?:user-ip|remote-addr)$/,
  // Its certificate (RFC 9440): a proxy must remove what it did not set.
  /^(?:x-)?ssl-client-|^(?:(?:x|wl-proxy)-)?client-cert(?:-|$)|^x-arr-clientcert$/,
  // The scheme and the host.
  /^(?:front-end-https|(?:x-)?url-scheme|x-scheme|x-arr-ssl|cloudfront-forwarded-proto)$/,
  /^x-http-host-override$/,
  // Another path than that of the request line: gunicorn cuts `SCRIPT_NAME` off it, from every peer on the loopback.
  /^(?:(?:x-)?script-name|path-info|x-replaced-path|x-waws-unencoded-url|x-ms-original-url)$/,
  // The path of the file that a server in between is to send instead (CVE-2025-61780, CVE-2026-7381).
  /^x-(?:accel-mapping|sendfile-type)$/,
];

/**
 * Whether a header is one that only a proxy may send, and that passes from a trusted one if `server.trustedHeaders` names
 * it. A proxy passes on what it does not know, so trusting it is not trusting each of its headers.
 *
 * @param folded a `foldedName`.
 */
export function comesFromProxies(folded: string): boolean {
  if (FORWARDED_NAMES.has(folded) || identifiesCaller(folded)) return false;
  return PROXY_FAMILIES.some((family) => family.test(folded));
}

/** Hop-by-hop headers (RFC 9110 §7.6.1), and headers that the proxy writes itself. */
export const DROPPED: readonly string[] = [
  ...CONNECTION_FIELDS,
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-authentication-info",
  "trailer",
  "host",
  "content-length",
  "expect",
  "x-request-id",
  "x-retry-attempt",
  // CGI turns it into HTTP_PROXY, the variable for the proxy of the backend's own requests (CVE-2016-5385).
  "proxy",
];

/**
 * Families of headers in which proxies identify the caller, since backends read more names than the presets list.
 * Authelia and CGI use `Remote-User` and similar names.
 */
const IDENTITY_FAMILIES =
  /^(?:x-(?:auth-request|remote|forwarded-(?:user|groups?|email|preferred-username|(?:access|id)-token))|remote-(?:user|groups?|email|name))(?:-|$)/;

/** The usual header of an assertion about the caller. */
export const ASSERTION_HEADER = "X-Auth-Assertion";

const PRESET_NAMES: ReadonlySet<string> = new Set(
  [
    ...CLIENT_HEADERS,
    ASSERTION_HEADER,
    ...Object.values(IDENTITY_PRESETS).flatMap((names) => Object.values(names)),
  ].map(foldedName),
);

/** Whether a header identifies the caller to some backend, even if the configuration does not name it. @param folded a `foldedName`. */
export function identifiesCaller(folded: string): boolean {
  return PRESET_NAMES.has(folded) || IDENTITY_FAMILIES.test(folded);
}

/** Headers that override the method, and thus the authorization: always removed. */
export const METHOD_OVERRIDES: ReadonlySet<string> = new Set([
  "x-http-method-override",
  "x-method-override",
  "x-http-method",
]);

/** Headers that some backends take for the path of the request. */
const PATH_OVERRIDE = /^x-(?:rewrite|original|envoy-original)-(?:url|uri|path)$/;

/** Where to go after the sign-in. ingress-nginx writes it into each question; it does not say who the caller is. */
const REDIRECT = "x-auth-request-redirect";

/**
 * Whether a header would make another request, or one of another caller, of what another proxy forwards itself.
 *
 * @param name in lower case. @param asked the fields by which that proxy asks: other spellings of them are not its own.
 */
export function isForged(name: string, asked: readonly string[]): boolean {
  if (asked.includes(name) || name === REDIRECT) return false;
  const folded = foldedName(name);
  return (
    identifiesCaller(folded) ||
    METHOD_OVERRIDES.has(folded) ||
    PATH_OVERRIDE.test(folded) ||
    asked.includes(folded) ||
    // CGI turns it into HTTP_PROXY (CVE-2016-5385).
    folded === "proxy"
  );
}

/** What Envoy and its codec write themselves, of which a client's own never reaches the backend. */
const OF_ENVOY: ReadonlySet<string> = new Set([
  ...CONNECTION_FIELDS,
  "host",
  "content-length",
  "x-request-id",
  "x-forwarded-for",
  "x-forwarded-proto",
  "expect",
  "trailer",
  "cdn-loop",
]);

/** Whether a header of a request is Envoy's own, so that it is told no change of it. @param name in lower case. */
export function belongsToEnvoy(name: string): boolean {
  if (OF_ENVOY.has(name)) return true;
  // Where a token may be among the protocols of a WebSocket, it is removed there.
  return name.startsWith("sec-websocket-") && name !== "sec-websocket-protocol";
}

/** Lists to which each proxy appends (RFC 8586 for `CDN-Loop`). */
const WRITTEN = ["cdn-loop", "x-forwarded-prefix"];

/** Whether a header of requests frames the message, ends at this hop, or is written by the proxy about the connection. */
export function belongsToProxy(name: string): boolean {
  const folded = foldedName(name);
  return (
    DROPPED.includes(folded) ||
    WRITTEN.includes(folded) ||
    FORWARDED_NAMES.has(folded) ||
    folded.startsWith("sec-websocket-")
  );
}

/** Whether a route must not change a header of requests: it belongs to the proxy, or identifies the caller. */
export function isOwnRequestHeader(name: string): boolean {
  return belongsToProxy(name) || identifiesCaller(foldedName(name));
}

const OWN_IN_ANSWERS = new Set([
  ...CONNECTION_FIELDS,
  "proxy-authenticate",
  "trailer",
  "content-length",
  "content-range",
  "x-request-id",
  "ratelimit",
  "ratelimit-policy",
  "proxy-status",
]);

/** Whether a route must not change a header of answers: it frames the message, ends at this hop, or is Sallyport's own. */
export function isOwnAnswerHeader(name: string): boolean {
  const folded = foldedName(name);
  return (
    OWN_IN_ANSWERS.has(folded) ||
    folded.startsWith("sec-websocket-") ||
    folded.startsWith("access-control-")
  );
}
