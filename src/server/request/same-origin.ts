import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Cors } from "../../core/route/cors.ts";
import { headerValues } from "../../lib/http/header-values.ts";

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
  return (isSwitching || !SAFE_METHODS.has(request.method)) && !isSameOrigin(request, cors);
}

/**
 * Whether a browser says that a page of this very origin has sent a request: by `Sec-Fetch-Site`, which no page can set, else
 * by `Origin`, which all browsers send with such requests. Without either it cannot be known, so it is not.. Other origins
 * may be trusted to send credentials, too.
 */
function isSameOrigin(request: GateRequest, cors: Cors | undefined): boolean {
  const { rawHeaders } = request;
  const [site, secondSite] = headerValues(rawHeaders, "sec-fetch-site");
  const [origin, secondOrigin] = headerValues(rawHeaders, "origin");
  if (secondSite !== undefined || secondOrigin !== undefined) return false;
  if (origin !== undefined && cors?.trusts(origin) === true) return true;
  // `none` is a user's own doing, such as a bookmark: nothing is known of the origin.
  if (site !== undefined && site !== "none") return site === "same-origin";
  return origin !== undefined && names(origin, request);
}

/** Whether an origin is that of the request: the same host and port, by TLS if the request came by TLS. */
function names(origin: string, { authority, connection: { secure } }: GateRequest): boolean {
  if (authority === "" || !URL.canParse(origin)) return false;
  const { protocol, host, origin: canonical } = new URL(origin);
  if (canonical !== origin || (secure && protocol !== "https:")) return false;
  const own = `${protocol}//${authority}`;
  // The same scheme leaves the same default port out.
  return URL.canParse(own) && new URL(own).host === host;
}
