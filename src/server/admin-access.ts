import type { IncomingMessage } from "node:http";
import { isIPv4, isIPv6, type Socket } from "node:net";
import { type Networks, networks, plainAddress } from "../lib/networks.ts";

/** What of a request says who asks, and from where. */
export interface Asking extends Pick<IncomingMessage, "method" | "headers"> {
  readonly socket: Pick<Socket, "remoteAddress">;
}

export interface AdminAccess {
  /** The peers that may see and do what is not for everybody. */
  readonly allow: Networks;
  /** What the listener is configured to listen on: by that it may be asked, too. */
  readonly host: string;
}

const LOOPBACK = networks(["127.0.0.0/8", "::1"]);

/**
 * Why a request gets nothing of what changes or reveals something; undefined when it may. The peer's address alone does not
 * decide it: the browser of somebody who has forwarded the port to his own machine is on the loopback, too, with every page
 * that he opens.
 */
export function accessRefusal(asking: Asking, { allow, host }: AdminAccess): string | undefined {
  const peer = plainAddress(asking.socket.remoteAddress ?? "");
  if (!allow.has(peer)) return "This address answers the peers of admin.allow only";
  if (isOfPage(asking)) return "A web page may not ask for this";
  if (LOOPBACK.has(peer) && !isOwnName(asking.headers.host, host)) {
    return "Ask for this by address or as localhost, not by another name";
  }
  return undefined;
}

/**
 * Whether a web page asks. Browsers say so in `Origin` or in `Sec-Fetch-Site` (W3C Fetch Metadata §2.3), where `none` is what
 * somebody typed himself: enough to look, not to change anything. Commands send neither.
 */
function isOfPage({ method, headers }: Asking): boolean {
  const site = headers["sec-fetch-site"];
  const typed = site === "none" && (method === "GET" || method === "HEAD");
  return headers.origin !== undefined || (site !== undefined && !typed);
}

/**
 * Whether nobody else can have given the name: a page whose own name was made to mean the loopback afterwards (DNS rebinding)
 * is of the same origin for the browser, which then says nothing of it, but has that name in `Host`. HTTP/1.0 may send none.
 */
function isOwnName(authority: string | undefined, own: string): boolean {
  if (authority === undefined) return true;
  const name = authority.replace(/:\d*$/, "").toLowerCase();
  if (name.startsWith("[") && name.endsWith("]")) return isIPv6(name.slice(1, -1));
  return isIPv4(name) || name === "localhost" || name === own.toLowerCase();
}
