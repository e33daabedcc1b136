import type { IncomingHttpHeaders } from "node:http";
import type { Permit } from "../../core/request/permit.ts";
import type { Route } from "../../core/route/route.ts";

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
  const { location, refresh } = headers;
  const contentLocation = headers["content-location"];
  const cookies = headers["set-cookie"];
  if (typeof location === "string") headers.location = mappedReference(location, permit, hosts);
  if (typeof contentLocation === "string") {
    headers["content-location"] = mappedReference(contentLocation, permit, hosts);
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

function prefixesOf(rewrite: Route["rewrite"]): { readonly strip: string; readonly add: string } {
  const { stripPrefix = "", addPrefix = "" } = rewrite ?? {};
  return { strip: stripPrefix.replace(/\/$/, ""), add: addPrefix.replace(/\/$/, "") };
}
