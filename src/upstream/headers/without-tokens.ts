import type { Permit } from "../../core/request/permit.ts";
import { AUTHORIZATION, type TokenPlace } from "../../core/request/token-place.ts";
import { withoutCookies } from "../../lib/http/cookie-fields.ts";
import { headerValues } from "../../lib/http/header-values.ts";
import { withoutQueryFields } from "../../lib/http/query-fields.ts";
import { BEARER_PROTOCOL, offeredProtocols } from "../../lib/http/websocket-bearer.ts";
import { foldedName } from "./header-names.ts";

const PROTOCOLS = "sec-websocket-protocol";

/** The query that the backend gets: what was sent, without tokens. */
export function forwardedQuery({ route, request }: Permit): string {
  if (route.tokenFrom === undefined || request.query === "") return request.query;
  const names = route.tokenFrom.flatMap((place) => ("query" in place ? [place.query] : []));
  return names.length === 0 ? request.query : withoutQueryFields(request.query, names);
}

/**
 * Removes tokens from header fields wherever the route looks for one; whatever else they hold stays as it was. What becomes of
 * `Authorization` the route says elsewhere.
 *
 * @param fields names and values, alternating.
 */
export function withoutTokens(fields: readonly string[], places: readonly TokenPlace[]): string[] {
  const { cookies, headers, protocols } = removed(places);
  const kept: string[] = [];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? "";
    const value = fields[i + 1] ?? "";
    const lower = name.toLowerCase();
    if (lower === "cookie") {
      const left = withoutCookies(value, cookies);
      if (left !== undefined) kept.push(name, left);
    } else if (headers.has(foldedName(name))) continue;
    else if (!(protocols && lower === PROTOCOLS)) kept.push(name, value);
  }
  if (!protocols) return kept;
  const { others } = offeredProtocols(headerValues(fields, PROTOCOLS).join(","));
  if (others.length > 0) kept.push("Sec-WebSocket-Protocol", others.join(", "));
  return kept;
}

function removed(places: readonly TokenPlace[]): {
  readonly cookies: readonly string[];
  readonly headers: ReadonlySet<string>;
  readonly protocols: boolean;
} {
  const cookies = places.flatMap((place) => ("cookie" in place ? [place.cookie] : []));
  const names = places.flatMap((place) => ("header" in place ? [foldedName(place.header)] : []));
  const headers = new Set(names.filter((name) => name !== AUTHORIZATION));
  return { cookies, headers, protocols: places.some((place) => "websocketProtocol" in place) };
}

/**
 * The protocol to answer if the backend chose none: a browser that has offered `bearer` fails without an answer. Undefined
 * if the token came otherwise.
 */
export function answeredProtocol({ route, request }: Permit): string | undefined {
  if (route.tokenFrom?.some((place) => "websocketProtocol" in place) !== true) return undefined;
  const list = headerValues(request.rawHeaders, PROTOCOLS).join(",");
  return offeredProtocols(list).bearer ? BEARER_PROTOCOL : undefined;
}
