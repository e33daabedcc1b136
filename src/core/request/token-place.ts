import type { OtherTokens } from "./other-tokens.ts";
import { foldedName, withoutCookies } from "../../lib/http/header-values.ts";

/** A place in a request that may contain its token. */
export type TokenPlace = (
  | { readonly header: string }
  | { readonly cookie: string }
  | { readonly query: string }
  | { readonly apiKey: string }
  | { readonly websocketProtocol: true }
) & {
  /** Whether the place counts as empty if it holds only tokens that nobody here could accept. They reach the backend. */
  readonly others?: "ignore";
};

/** The name of the standard place (RFC 6750 §2.1). */
export const AUTHORIZATION = "authorization";

const COOKIE = "cookie";
const PROTOCOLS = "sec-websocket-protocol";

/** Describes a place in words: `the cookie session`. */
export function placeWords(place: TokenPlace): string {
  if ("header" in place) return `the header ${place.header}`;
  if ("cookie" in place) return `the cookie ${place.cookie}`;
  if ("apiKey" in place) return `the API key in ${place.apiKey}`;
  return "query" in place ? `the query field ${place.query}` : "the WebSocket protocol";
}

/** Returns how the names of the cookies begin that browsers keep while people sign in at a provider. */
export function signInCookies(session: string): string {
  return `${session}-signin-`;
}

interface SentRequest {
  /** Names and values, alternating. */
  readonly rawHeaders: readonly string[];
  /** With its `?`, or empty. */
  readonly query: string;
}

/** The places where a route looks for tokens, prepared once for use with each request. */
export class TokenPlaces {
  /** In the order of the configuration. */
  readonly list: readonly TokenPlace[];
  readonly cookies: readonly string[];
  readonly queries: readonly string[];
  readonly websocketProtocol: boolean;
  /** Whether one of them is the session cookie: then an `Authorization` of another scheme belongs to the application. */
  readonly session: boolean;
  /** The `Authorization` header, if it is one of the places. */
  readonly authorization: TokenPlace | undefined;
  /** API keys in `Authorization`, if they count there: they begin in a way that no token does. */
  readonly keysInAuthorization: TokenPlace | undefined;
  /** Whether some places are not `Authorization`, the only one that caches know to contain a token (RFC 9111 §3.5). */
  readonly hiddenFromCaches: boolean;
  /** Whether some places may hold tokens of others. */
  readonly ignoresOthers: boolean;
  /** Whether `Authorization` is the application's: for requests that have only a token of others there. */
  readonly authorizationIsOthers: boolean = false;
  readonly #session: string | undefined;
  readonly #others: OtherTokens | undefined;
  /** What `leaveOut` has left, by the places and by the request. */
  readonly #reduced = new Map<string, TokenPlaces>();
  readonly #left = new WeakMap<object, TokenPlaces>();
  /** The folded names of header fields, without `Authorization`. */
  readonly #headers: readonly string[];
  /** How the names of further cookies begin that reach no backend. */
  readonly #signIns: string | undefined;
  readonly #isHidden = (cookie: string): boolean =>
    this.cookies.includes(cookie) ||
    (this.#signIns !== undefined && cookie.startsWith(this.#signIns));

  /**
   * @param session the name of the cookie of sessions, which never reaches a backend, even if it is no place here.
   * @param others needed if a place ignores the tokens of others.
   */
  constructor(list: readonly TokenPlace[], session?: string, others?: OtherTokens) {
    this.list = list;
    this.#session = session;
    this.#others = others;
    this.ignoresOthers = others !== undefined && list.some((place) => place.others === "ignore");
    const cookies = list.flatMap((place) => ("cookie" in place ? [place.cookie] : []));
    this.session = session !== undefined && cookies.includes(session);
    this.#signIns = session === undefined ? undefined : signInCookies(session);
    this.cookies = session === undefined ? cookies : [...new Set([...cookies, session])];
    this.queries = list.flatMap((place) => ("query" in place ? [place.query] : []));
    this.websocketProtocol = list.some((place) => "websocketProtocol" in place);
    this.authorization = list.find(
      (place) => "header" in place && foldedName(place.header) === AUTHORIZATION,
    );
    this.keysInAuthorization = list.find(
      (place) => "apiKey" in place && foldedName(place.apiKey) === AUTHORIZATION,
    );
    this.hiddenFromCaches = list.some(
      (place) => place !== this.authorization && place !== this.keysInAuthorization,
    );
    this.#headers = list
      .flatMap((place) =>
        "header" in place ? [place.header] : "apiKey" in place ? [place.apiKey] : [],
      )
      .map(foldedName)
      .filter((name) => name !== AUTHORIZATION);
  }

  /**
   * Whether a request may have a token anywhere but in `Authorization`. Most requests do not, and need no closer
   * look.
   */
  mayBeElsewhere({ rawHeaders, query }: SentRequest): boolean {
    if (query !== "" && this.queries.length > 0) return true;
    for (let i = 0; i < rawHeaders.length; i += 2) {
      if (this.hides(rawHeaders[i] ?? "") !== undefined) return true;
    }
    return false;
  }

  /** Whether nobody here could accept a token. */
  isOfOthers(token: string): boolean {
    return this.#others?.has(token) === true;
  }

  /** Returns the places of a request without those that hold only tokens of others. `for` returns them from then on. */
  leaveOut(request: object, ignored: readonly TokenPlace[]): TokenPlaces {
    const key = ignored.map((place) => this.list.indexOf(place)).join(",");
    let left = this.#reduced.get(key);
    if (left === undefined) {
      const list = this.list.filter((place) => !ignored.includes(place));
      const isOthers = ignored.some((place) => place === this.authorization);
      left = Object.assign(new TokenPlaces(list, this.#session), {
        authorizationIsOthers: isOthers,
      });
      this.#reduced.set(key, left);
    }
    this.#left.set(request, left);
    return left;
  }

  /** The places of a request that was decided: what is in them does not reach the backend. */
  for(request: object): TokenPlaces {
    return this.ignoresOthers ? (this.#left.get(request) ?? this) : this;
  }

  /** Returns a `Cookie` field as the backend gets it; undefined if nothing is left. */
  withoutTokens(field: string): string | undefined {
    return withoutCookies(field, this.#isHidden);
  }

  /**
   * Returns the part of a field that must not reach the backend: `cookies` of some names, the `protocols` that are
   * tokens, or the whole `field`. Returns undefined for none. `Authorization` is subject to `forwardAuthorization`
   * instead.
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
      // Compare lengths first: folding keeps the length and is the costliest step.
      if (hidden.length === length && foldedName(name) === hidden) return "field";
    }
    return undefined;
  }
}
