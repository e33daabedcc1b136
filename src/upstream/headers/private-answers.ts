import type { Permit } from "../../core/request/permit.ts";

/** Directives by which a backend says itself whether shared caches may keep an answer (RFC 9111 §3.5). */
const DECIDED = /(?:^|[\s,])(?:private|no-store|public|s-maxage|must-revalidate)(?=$|[\s,=])/i;

/** Whether `keepPrivate` has anything to do on a route. */
export function mayNeedPrivacy({ auth, tokenFrom }: Permit["route"]): boolean {
  return tokenFrom !== undefined || auth === "optional";
}

/**
 * Keeps an answer to one caller out of shared caches. They do not keep the answer to a request with `Authorization` unless
 * told to (RFC 9111 §3.5), but they do not know that a cookie or a query holds a token (RFC 6750 §2.3). Where a token may
 * be left out, an answer differs with it.
 *
 * @param fields names and values, alternating; the names in lower case. Changed in place.
 */
export function keepPrivate(fields: string[], { route, identity }: Permit): void {
  const { tokenFrom = [] } = route;
  const varying = route.auth === "optional" ? variesWith(tokenFrom) : "";
  if (varying !== "") fields.push("vary", varying);
  const hidden = tokenFrom.some((place) => !("header" in place));
  if (identity === undefined || !hidden) return;
  const decided = fields.some(
    (name, at) => at % 2 === 0 && name === "cache-control" && DECIDED.test(fields[at + 1] ?? ""),
  );
  if (!decided) fields.push("cache-control", "private");
}

function variesWith(places: NonNullable<Permit["route"]["tokenFrom"]>): string {
  const headers = places.flatMap((place) => ("header" in place ? [place.header] : []));
  const cookie = places.some((place) => "cookie" in place) ? ["Cookie"] : [];
  const names = places.length === 0 ? ["Authorization"] : [...headers, ...cookie];
  return names.join(", ");
}
