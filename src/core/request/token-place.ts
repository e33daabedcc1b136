import { foldedName } from "../../lib/http/folded-name.ts";

/** A place of a request that may hold its token. */
export type TokenPlace =
  | { readonly header: string }
  | { readonly cookie: string }
  | { readonly query: string }
  | { readonly websocketProtocol: true };

/** The name of the standard place (RFC 6750 §2.1). */
export const AUTHORIZATION = "authorization";

const COOKIE = "cookie";
const PROTOCOLS = "sec-websocket-protocol";

/** A place in words: `the cookie session`. */
export function placeWords(place: TokenPlace): string {
  if ("header" in place) return `the header ${place.header}`;
  if ("cookie" in place) return `the cookie ${place.cookie}`;
  return "query" in place ? `the query field ${place.query}` : "the WebSocket protocol";
}

interface SentRequest {
  /** Names and values, alternating. */
  readonly rawHeaders: readonly string[];
  /** With its `?`, or empty. */
  readonly query: string;
}

/** The places where a route looks for tokens, sorted once by what must be done with each request. */
export class TokenPlaces {
  /** In the order of the configuration. */
  readonly list: readonly TokenPlace[];
  readonly cookies: readonly string[];
  readonly queries: readonly string[];
  readonly websocketProtocol: boolean;
  /** The standard place, if it is one of them. */
  readonly authorization: TokenPlace | undefined;
  /** Whether some are places that caches do not know to hold tokens. */
  readonly hidden: boolean;
  /** Folded names, without `Authorization`. */
  readonly #headers: readonly string[];

  constructor(list: readonly TokenPlace[]) {
    this.list = list;
    this.cookies = list.flatMap((place) => ("cookie" in place ? [place.cookie] : []));
    this.queries = list.flatMap((place) => ("query" in place ? [place.query] : []));
    this.websocketProtocol = list.some((place) => "websocketProtocol" in place);
    this.authorization = list.find(
      (place) => "header" in place && foldedName(place.header) === AUTHORIZATION,
    );
    this.hidden = list.some((place) => !("header" in place));
    this.#headers = list
      .flatMap((place) => ("header" in place ? [foldedName(place.header)] : []))
      .filter((name) => name !== AUTHORIZATION);
  }

  /** Whether a request may have a token anywhere but in `Authorization`: most have not, and need no closer look. */
  mayBeElsewhere({ rawHeaders, query }: SentRequest): boolean {
    if (query !== "" && this.queries.length > 0) return true;
    for (let i = 0; i < rawHeaders.length; i += 2) {
      if (this.hides(rawHeaders[i] ?? "") !== undefined) return true;
    }
    return false;
  }

  /**
   * What of a field is kept from the backend: `cookies` of some names, the `protocols` that are tokens, or the whole `field`.
   * Undefined for nothing; what becomes of `Authorization` the route says elsewhere.
   */
  hides(name: string): "cookies" | "protocols" | "field" | undefined {
    const { length } = name;
    if (length === COOKIE.length && name.toLowerCase() === COOKIE) {
      return this.cookies.length > 0 ? "cookies" : undefined;
    }
    if (length === PROTOCOLS.length && name.toLowerCase() === PROTOCOLS) {
      return this.websocketProtocol ? "protocols" : undefined;
    }
    for (const hidden of this.#headers) {
      // Folding keeps the length, and costs more than all the rest.
      if (hidden.length === length && foldedName(name) === hidden) return "field";
    }
    return undefined;
  }
}
