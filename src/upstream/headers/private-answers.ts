import type { Permit } from "../../core/request/permit.ts";
import type { TokenPlace } from "../../core/request/token-place.ts";

/** Directives with which a backend controls whether shared caches may store a response (RFC 9111 §3.5). */
const DECIDED = /(?:^|[\s,])(?:private|no-store|public|s-maxage|must-revalidate)(?=$|[\s,=])/i;

/**
 * Keeps responses to authenticated callers out of shared caches. Caches do not store the response to a request with
 * `Authorization` unless a directive allows it (RFC 9111 §3.5), but they cannot know that another header, a cookie or a
 * query contains a token (RFC 6750 §2.3). If a token is optional, the response varies with it. There is nothing to do on a
 * route without `tokenFrom` that requires a token. If a token may be in the query, tells browsers to send no `Referer`.
 *
 * @param fields names and values, alternating; the names in lower case. Changed in place.
 */
export function keepPrivate(fields: string[], { route, identity, request }: Permit): void {
  const { tokenFrom } = route;
  if (tokenFrom !== undefined && tokenFrom.queries.length > 0) hideReferrer(fields);
  const varying = route.auth === "optional" ? variesWith(tokenFrom?.list ?? []) : "";
  if (varying !== "") fields.push("vary", varying);
  const isKnown = request.authorization !== undefined;
  if (identity === undefined || isKnown || tokenFrom?.hiddenFromCaches !== true) return;
  const decided = fields.some(
    (name, at) => at % 2 === 0 && name === "cache-control" && DECIDED.test(fields[at + 1] ?? ""),
  );
  if (!decided) fields.push("cache-control", "private");
}

/** The browser would repeat the URL, with its token, to every server from which the page loads something. */
function hideReferrer(fields: string[]): void {
  const decided = fields.some((name, at) => at % 2 === 0 && name === "referrer-policy");
  if (!decided) fields.push("referrer-policy", "no-referrer");
}

function variesWith(places: readonly TokenPlace[]): string {
  const headers = places.flatMap((place) => ("header" in place ? [place.header] : []));
  const cookie = places.some((place) => "cookie" in place) ? ["Cookie"] : [];
  const names = places.length === 0 ? ["Authorization"] : [...headers, ...cookie];
  return names.join(", ");
}
