import type { IncomingMessage } from "node:http";
import { isIPv4, isIPv6, type Socket } from "node:net";
import { type Networks, createNetworks, unmapAddress } from "../../lib/http/networks.ts";

/** The parts of a request that identify its sender. */
export interface RequestSource extends Pick<IncomingMessage, "method" | "headers"> {
  readonly socket: Pick<Socket, "remoteAddress">;
}

export interface AdminAccess {
  /** The peers that may use restricted pages. */
  readonly allow: Networks;
  /** The configured host of the listener, which is a valid name for it, too. */
  readonly host: string;
}

const LOOPBACK = createNetworks(["127.0.0.0/8", "::1"]);

/**
 * Returns why a request may not use restricted pages, or undefined if it may. The peer's address alone does not
 * decide: with a forwarded port, the browser of its user is on the loopback, and so is every page that it opens.
 */
export function accessRefusal(
  source: RequestSource,
  { allow, host }: AdminAccess,
): string | undefined {
  const peer = unmapAddress(source.socket.remoteAddress ?? "");
  if (!allow.has(peer)) return "This address answers the peers of admin.allow only";
  if (isFromWebPage(source)) return "A web page may not ask for this";
  if (LOOPBACK.has(peer) && !isOwnName(source.headers.host, host)) {
    return "Ask for this by address or as localhost, not by another name";
  }
  return undefined;
}

/**
 * Whether a web page sent the request. Browsers say so in `Origin` or in `Sec-Fetch-Site` (W3C Fetch Metadata §2.3),
 * where `none` means that the user typed the address: enough to read, not to change anything. Command-line clients
 * send neither.
 */
function isFromWebPage({ method, headers }: RequestSource): boolean {
  const site = headers["sec-fetch-site"];
  const typed = site === "none" && (method === "GET" || method === "HEAD");
  return headers.origin !== undefined || (site !== undefined && !typed);
}

/**
 * Whether the host name cannot belong to anyone else. A page whose own name was made to point to the loopback (DNS
 * rebinding) is same-origin for the browser, which then sends neither header, but it has that name in `Host`.
 * HTTP/1.0 may send no `Host`.
 */
function isOwnName(authority: string | undefined, own: string): boolean {
  if (authority === undefined) return true;
  const name = authority.replace(/:\d*$/, "").toLowerCase();
  if (name.startsWith("[") && name.endsWith("]")) return isIPv6(name.slice(1, -1));
  return isIPv4(name) || name === "localhost" || name === own.toLowerCase();
}
