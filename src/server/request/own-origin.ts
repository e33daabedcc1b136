import type { GateRequest } from "../../core/request/gate-request.ts";
import { headerValues } from "../../lib/http/header-values.ts";
import type { SentProof } from "../../tokens/proofs/proofs.ts";
import type { Cors } from "../endpoints/cors.ts";

/** Whether a page of this very host has made a browser send a request: what a cookie alone does not show. */

/** Another proxy that asks may keep fields of a handshake, but not the request to switch. */
function isHandshake({ rawHeaders }: GateRequest): boolean {
  return rawHeaders.some((name, at) => {
    if (at % 2 === 1) return false;
    const lower = name.toLowerCase();
    if (lower === "sec-fetch-mode") return rawHeaders[at + 1]?.toLowerCase() === "websocket";
    return lower === "upgrade" || lower.startsWith("sec-websocket-");
  });
}

/** Whether a browser says of itself where a request comes from. */
export function isOfBrowser({ rawHeaders }: GateRequest): boolean {
  return (
    headerValues(rawHeaders, "origin").length > 0 ||
    headerValues(rawHeaders, "sec-fetch-site").length > 0
  );
}

/** Methods that change nothing (RFC 9110 §9.2.1). Any page can make a browser send them by a link. */
const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * Whether a page of another site may have made a browser send a request that has an effect: browsers add cookies to such
 * a request, too. A WebSocket is opened by GET, and what it receives can be read across origins.
 */
export function comesFromAnotherSite(
  request: GateRequest,
  isSwitching: boolean,
  cors: Cors | undefined,
): boolean {
  return (
    (isSwitching || isHandshake(request) || !SAFE_METHODS.has(request.method)) &&
    !isSameOrigin(request, cors)
  );
}

/**
 * Whether a browser says that a page of this very origin has sent a request: by `Sec-Fetch-Site`, which no page can set, else
 * by `Origin`, which all browsers send with such requests. Without either it cannot be known, so it is not. Other origins
 * may be trusted to send credentials, too.
 */
export function isSameOrigin(request: GateRequest, cors: Cors | undefined): boolean {
  const { rawHeaders } = request;
  const [site, secondSite] = headerValues(rawHeaders, "sec-fetch-site");
  const [origin, secondOrigin] = headerValues(rawHeaders, "origin");
  if (secondSite !== undefined || secondOrigin !== undefined) return false;
  if (origin !== undefined && cors?.trusts(origin) === true) return true;
  // `none` is a user's own doing, such as a bookmark: nothing is known of the origin.
  if (site !== undefined && site !== "none") return site === "same-origin";
  return origin !== undefined && names(origin, request);
}

/** Whether an origin is that of the request: the same scheme, host and port. */
function names(origin: string, request: GateRequest): boolean {
  const { authority } = request;
  if (authority === "" || !URL.canParse(origin)) return false;
  const { protocol, host, origin: canonical } = new URL(origin);
  if (canonical !== origin || !ownSchemes(request).includes(protocol)) return false;
  const own = `${protocol}//${authority}`;
  // The same scheme leaves the same default port out.
  return URL.canParse(own) && new URL(own).host === host;
}

/** A name (RFC 1035 §2.3.4) with its final dot, and a port. */
const LONGEST_AUTHORITY = 260;

/** Returns the origin at which a browser has this host open; undefined if the request names none, or what cannot be one. */
export function originOf(request: GateRequest): string | undefined {
  const { authority } = request;
  const scheme = ownSchemes(request).length === 1 ? ownSchemes(request)[0] : "https:";
  const origin = `${scheme}//${authority}`;
  const isName = authority !== "" && authority.length <= LONGEST_AUTHORITY;
  return isName && URL.canParse(origin) ? new URL(origin).origin : undefined;
}

const ONLY_TLS: readonly string[] = ["https:"];
/** Traefik names the schemes of WebSockets. */
const BY_REPORT: Readonly<Record<string, readonly string[]>> = {
  https: ONLY_TLS,
  wss: ONLY_TLS,
  http: ["http:"],
  ws: ["http:"],
};
const EITHER: readonly string[] = ["http:", "https:"];

/**
 * The schemes by which a browser may have sent the request: what a trusted proxy says, else that of the connection. Without
 * TLS here and such a proxy, TLS may end in front, unseen. Anybody on the network can serve a page of `http://`, so a report
 * that is not clear never permits that.
 */
function ownSchemes({ rawHeaders, connection }: GateRequest): readonly string[] {
  const [report, another] = connection.peerTrusted
    ? headerValues(rawHeaders, "x-forwarded-proto")
    : [];
  if (report === undefined) return connection.secure ? ONLY_TLS : EITHER;
  const scheme = report.trim().toLowerCase();
  return (
    (another === undefined && Object.hasOwn(BY_REPORT, scheme) && BY_REPORT[scheme]) || ONLY_TLS
  );
}

/**
 * Returns what a request brings to prove that its client has a key (RFC 9449 §4.3, RFC 8705 §3).
 *
 * @param isOwnHost the sender chooses the host: a server that got a token with a proof for itself would name itself.
 */
export function proofIn(
  request: GateRequest,
  isOwnHost: (host: string) => boolean = () => true,
): SentProof {
  const { rawHeaders, method, connection } = request;
  return {
    sent: headerValues(rawHeaders, "dpop"),
    method,
    isTarget: (url) => isOwnHost(request.host) && isUrlOf(url, request),
    // A trusted proxy brings its own, not that of its client.
    certificate: connection.peerTrusted ? undefined : connection.clientCertificate?.thumbprint,
  };
}

/** The form of an URL whose host nobody can read otherwise, in its parts: the origin and the path. */
const HTTP_URL = /^(https?:\/\/[\w.~:[\]-]+)(\/[^\\?#\s]*)?(?:[?#].*)?$/i;
const UNRESERVED = /[\w.~-]/;

/** Whether a URL is that of the request, whatever its query, after normalization by RFC 3986 §6.2.2 and §6.2.3. */
function isUrlOf(url: string, request: GateRequest): boolean {
  const { authority, path } = request;
  for (const scheme of ownSchemes(request)) {
    const own = `${scheme}//${authority}${path}`;
    if (url === own || (normalized(url) ?? "") === normalized(own)) return true;
  }
  return false;
}

function normalized(url: string): string | undefined {
  const [, origin = "", path = "/"] = HTTP_URL.exec(url) ?? [];
  const decoded = path.replaceAll(/%([0-9a-f]{2})/gi, (escape, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16));
    return UNRESERVED.test(character) ? character : escape.toUpperCase();
  });
  return URL.canParse(origin + decoded) ? new URL(origin + decoded).href : undefined;
}
