/** A place of a request that may hold its token. */
export type TokenPlace =
  | { readonly header: string }
  | { readonly cookie: string }
  | { readonly query: string }
  | { readonly websocketProtocol: true };

/** The name of the standard place (RFC 6750 §2.1). */
export const AUTHORIZATION = "authorization";

/** A place in words: `the cookie session`. */
export function placeWords(place: TokenPlace): string {
  if ("header" in place) return `the header ${place.header}`;
  if ("cookie" in place) return `the cookie ${place.cookie}`;
  return "query" in place ? `the query field ${place.query}` : "the WebSocket protocol";
}
