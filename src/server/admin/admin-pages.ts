import type { IncomingMessage } from "node:http";
import { isIPv4, isIPv6, type Socket } from "node:net";
import { type AdminPage, type AdminResponse, PLAIN_TEXT } from "../../core/admin-page.ts";
import type { Log } from "../../core/log.ts";
import { createNetworks, type Networks, unmapAddress } from "../../lib/http/networks.ts";
import { failure, page, success } from "./state-pages.ts";

/** The parts of a request that identify its sender. */
interface RequestSource extends Pick<IncomingMessage, "method" | "url" | "headers"> {
  readonly socket: Pick<Socket, "remoteAddress">;
}

const LOOPBACK = createNetworks(["127.0.0.0/8", "::1"]);

/**
 * Returns why a request may not use restricted pages, or undefined if it may. The peer's address alone does not
 * decide: with a forwarded port, the browser of its user is on the loopback, and so is every page that it opens.
 */
export function accessRefusal(
  source: RequestSource,
  { allow, host }: Pick<AdminSite, "allow" | "host">,
): string | undefined {
  const peer = unmapAddress(source.socket.remoteAddress ?? "");
  if (!allow.has(peer)) return "This address answers the peers of admin.allow only";
  if (isFromWebPage(source, host)) return "A web page may not ask for this";
  if (LOOPBACK.has(peer) && !isOwnName(source.headers.host, host)) {
    return "Ask for this by address or as localhost, not by another name";
  }
  return undefined;
}

/**
 * Whether a web page sent the request. Browsers say so in `Origin` or in `Sec-Fetch-Site` (W3C Fetch Metadata §2.3),
 * where `none` means that the user typed the address: enough to read, not to change anything. So is a link of the status page to
 * itself. Command-line clients send neither.
 */
function isFromWebPage(source: RequestSource, ownHost: string): boolean {
  const { method, headers } = source;
  const site = headers["sec-fetch-site"];
  if (headers.origin !== undefined) return true;
  if (site === undefined) return false;
  const isRead = method === "GET" || method === "HEAD";
  return !isRead || !(site === "none" || isOwnLink(source, ownHost));
}

const STATUS_PAGE = /^\/-\/(?:\?|$)/;

/**
 * A navigation, whose answer no script gets, unless a page of the same origin opened it in a window: one that another server
 * has left in the browser, which had this address before. From such a page the status page cuts itself off by
 * `Cross-Origin-Opener-Policy`; others do not, so nothing may lead there.
 */
function isOwnLink({ url = "", headers }: RequestSource, ownHost: string): boolean {
  const [site, mode, dest] = ["site", "mode", "dest"].map((name) => headers[`sec-fetch-${name}`]);
  const isNavigation = mode === "navigate" && dest === "document";
  const isSame = site === "same-origin" && isNavigation && STATUS_PAGE.test(url);
  return isSame && isOwnName(headers.host, ownHost);
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

/** The pages of the admin listener and who may use them. */
export interface AdminSite {
  /** The peers that may use restricted pages. */
  readonly allow: Networks;
  /** The configured host of the listener, which is a valid name for it, too. */
  readonly host: string;
  readonly pages: readonly AdminPage[];
  readonly log: Log;
}

const NOTHING_HERE = "There is nothing at this address; / lists the pages";

/** Returns the response to a request, or those who wait for it, several requests together. Never throws. */
export function adminResponse(request: IncomingMessage, site: AdminSite): AdminResponse | Waiters {
  const [path = "", query = ""] = (request.url ?? "").split("?", 2);
  const pages = [...site.pages, indexOf(site.pages)].filter((each) => each.path === path);
  if (pages.length === 0) return failure(404, NOTHING_HERE);
  const restricted = pages.some(({ audience }) => audience === "allowed");
  const forbidden = restricted ? accessRefusal(request, site) : undefined;
  if (forbidden !== undefined) return failure(403, forbidden);
  const asked = request.method === "HEAD" ? "GET" : request.method;
  const found = pages.find(({ method }) => method === asked);
  if (found === undefined) {
    const allow = pages.map(({ method }) => (method === "GET" ? "GET, HEAD" : method)).join(", ");
    return { ...failure(405, "This method is not allowed here"), allow };
  }
  const peer = unmapAddress(request.socket.remoteAddress ?? "");
  try {
    const answer = found.answer({
      query: new URLSearchParams(query),
      headers: request.headers,
      peer,
      allowed: site.allow.has(peer),
    });
    return answer instanceof Promise ? waitersFor(answer, path, site.log) : answer;
  } catch (error) {
    return failed(path, error, site.log);
  }
}

/** Those who wait for one response of a page: a promise would hold clients in memory after they left. */
type Waiters = Set<(answer: AdminResponse) => void>;

const waiting = new WeakMap<Promise<AdminResponse>, Waiters>();

/** Returns everyone who waits for the same promise, to join and to leave. */
function waitersFor(answer: Promise<AdminResponse>, path: string, log: Log): Waiters {
  const known = waiting.get(answer);
  if (known !== undefined) return known;
  const waiters: Waiters = new Set();
  waiting.set(answer, waiters);
  void answer
    .catch((error: unknown) => failed(path, error, log))
    .then((made) => {
      // A cached promise may get further waiters, which this call would not notify.
      waiting.delete(answer);
      for (const each of waiters) each(made);
    });
  return waiters;
}

function failed(path: string, error: unknown, log: Log): AdminResponse {
  log.error("admin page failed", { path, error });
  return failure(500, "Something went wrong inside the proxy");
}

/** `GET /`: lists the pages, and sends browsers to the status. A page of that path, such as a backend's probe, replaces it. */
function indexOf(pages: readonly AdminPage[]): AdminPage {
  return page("/", ({ headers }) => {
    // People who type the address of the listener want to see its state.
    const isBrowser = headers.accept?.startsWith("text/html") === true;
    if (isBrowser && pages.some(({ path }) => path === "/-/")) {
      return { status: 303, type: PLAIN_TEXT, body: "", headers: { Location: "/-/" } };
    }
    return success("The pages of the admin listener", {
      pages: pages.map(({ path, method, audience }) => ({ method, path, audience })),
    });
  });
}
