import { cookieValues, headerValues, queryValues } from "../../lib/http/header-values.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import {
  AUTHORIZATION,
  placeWords,
  type TokenPlace,
  type TokenPlaces,
} from "../../core/request/token-place.ts";
import type { TokenRefusal } from "../../core/request/token-verifier.ts";
import { type OfferedProtocols, offeredProtocols } from "../../lib/http/websocket-bearer.ts";

const SCHEME = "bearer ";
const USUAL_SCHEME = "Bearer ";

const MISSING: TokenRefusal = { step: "bearer", reason: "missing" };
const MULTIPLE: TokenRefusal = { step: "bearer", reason: "multiple" };
const EMPTY: TokenRefusal = { step: "form", reason: "malformed", detail: "it is empty" };
/**
 * Kubernetes requires the same: a browser fails unless the server selects one of its subprotocols, which must not
 * be the token.
 */
const ALONE: TokenRefusal = {
  step: "bearer",
  reason: "malformed",
  detail: "the WebSocket must offer another protocol besides the token, to be answered",
};

/** A token and the place where it was found. */
interface FoundToken {
  readonly token: string;
  readonly place: TokenPlace;
}

const DPOP_SCHEME = /^dpop(?: |$)/i;

/** Whether a request has the scheme of tokens that come with a proof (RFC 9449 §7.1). */
export function hasDpopScheme({ authorization }: GateRequest): boolean {
  return authorization !== undefined && DPOP_SCHEME.test(authorization);
}

/**
 * Returns the bearer token of a request (RFC 6750 §2.1; the scheme in any case, RFC 9110 §11.1), or why there is none.
 *
 * @param takesDpop whether the scheme `DPoP` counts, too.
 */
export function bearerToken(request: GateRequest, takesDpop = false): string | TokenRefusal {
  const { authorization, authorizations } = request;
  if (authorization === undefined) return MISSING;
  if (authorizations > 1) return MULTIPLE;
  const { length } = SCHEME;
  const isBearer =
    authorization.startsWith(USUAL_SCHEME) ||
    authorization.slice(0, length).toLowerCase() === SCHEME;
  // `Bearer` without a token is malformed; any other scheme counts as no token.
  if (!isBearer) {
    if (takesDpop && hasDpopScheme(request)) {
      return authorization.replace(/^dpop */i, "") || EMPTY;
    }
    return authorization.toLowerCase() === "bearer" ? EMPTY : MISSING;
  }
  return authorization.slice(length).replace(/^ +/, "");
}

/**
 * Returns the token of a request on a route that lists the places of tokens. Values are used unchanged, so that a token
 * has one spelling in each place. Tokens in two places are refused, because it would be unclear who is calling.
 */
export function tokenIn(
  request: GateRequest,
  places: TokenPlaces,
  takesDpop = false,
): FoundToken | TokenRefusal {
  const left = places.ignoresOthers ? withoutOthers(request, places, takesDpop) : places;
  const { list, authorization, keysInAuthorization } = left;
  const usual = [authorization, keysInAuthorization].filter((place) => place !== undefined);
  const looked = left.mayBeElsewhere(request) ? list : usual;
  let found: FoundToken | TokenRefusal | undefined;
  for (const place of looked) {
    const tokens = tokensAt(request, place, places, takesDpop);
    if ("reason" in tokens) {
      if (tokens === MISSING) continue;
      return tokens;
    }
    const [token] = tokens;
    if (token === undefined) continue;
    if (tokens.length > 1) return { ...MULTIPLE, detail: `there are two in ${placeWords(place)}` };
    if (found !== undefined) {
      return { ...MULTIPLE, detail: `there is another in ${placeWords(place)}` };
    }
    found = token === "" ? EMPTY : { token, place };
  }
  return (
    found ?? { ...MISSING, detail: `there is none in ${places.list.map(placeWords).join(", ")}` }
  );
}

/** Returns the token of a request, or why there is none. @param places undefined for `Authorization` alone. */
export function tokenOf(
  request: GateRequest,
  places: TokenPlaces | undefined,
  takesDpop: boolean,
): FoundToken | TokenRefusal {
  if (places !== undefined) return tokenIn(request, places, takesDpop);
  const token = bearerToken(request, takesDpop);
  return typeof token === "string" ? { token, place: { header: "Authorization" } } : token;
}

/** Returns the places without those that hold only tokens of others. Where another one is beside, it is unclear which counts. */
function withoutOthers(request: GateRequest, places: TokenPlaces, takesDpop: boolean): TokenPlaces {
  const ignored = places.list.filter((place) => {
    if (place.others !== "ignore") return false;
    const found =
      "websocketProtocol" in place
        ? offeredIn(request.rawHeaders).tokens
        : tokensAt(request, place, places, takesDpop);
    if ("reason" in found || found.length === 0) return false;
    return found.every((token) => places.isOfOthers(token));
  });
  return ignored.length === 0 ? places : places.leaveOut(request, ignored);
}

/** Returns all tokens in one place, or why its content is not a token. */
function tokensAt(
  request: GateRequest,
  place: TokenPlace,
  { authorization, keysInAuthorization }: TokenPlaces,
  takesDpop: boolean,
): readonly string[] | TokenRefusal {
  const { rawHeaders, query } = request;
  if ("query" in place) return queryValues(query, place.query);
  if ("cookie" in place) {
    const [field = "", another] = headerValues(rawHeaders, "cookie");
    if (another === undefined) return cookieValues(field, place.cookie);
    return headerValues(rawHeaders, "cookie").flatMap((each) => cookieValues(each, place.cookie));
  }
  if ("websocketProtocol" in place) {
    const { tokens, others, bearer } = offeredIn(rawHeaders);
    return tokens.length > 0 && others.length === 0 && !bearer ? ALONE : tokens;
  }
  const header = "apiKey" in place ? place.apiKey : place.header;
  if (header.toLowerCase() !== AUTHORIZATION) {
    return headerValues(rawHeaders, header.toLowerCase()).map(withoutScheme);
  }
  const token = bearerToken(request, takesDpop);
  if (typeof token !== "string") return token;
  if (authorization === undefined || keysInAuthorization === undefined) return [token];
  // Both may be here: each takes its own.
  return token.startsWith("sp_") === "apiKey" in place ? [token] : [];
}

function offeredIn(rawHeaders: readonly string[]): OfferedProtocols {
  return offeredProtocols(headerValues(rawHeaders, "sec-websocket-protocol").join(","));
}

function withoutScheme(value: string): string {
  return value.slice(0, SCHEME.length).toLowerCase() === SCHEME
    ? value.slice(SCHEME.length)
    : value;
}

/**
 * Why a token was refused, for clients: `error_description` (RFC 6750 §3). Reveals nothing about the token or the
 * configuration.
 */
export const REFUSAL_DESCRIPTIONS: Readonly<Record<TokenRefusal["reason"], string | undefined>> = {
  malformed: "The token is malformed",
  too_large: "The token is too large",
  algorithm: "The signature algorithm is not accepted",
  unknown_key: "The key that signed the token is not known",
  signature: "The signature is not valid",
  expired: "The token has expired",
  not_yet_valid: "The token is not valid yet",
  issuer: "The issuer is not accepted",
  audience: "The token is for another audience",
  no_expiry: "The token has no expiration time",
  lifetime: "The lifetime of the token is too long",
  sender_constrained: "The token is bound to a key, which is not supported",
  type: "The type of the token is not accepted",
  revoked: "The token was revoked",
  inactive: "The token is not active",
  unbound: "The token is not bound to a key",
  proof_missing: "The token is bound to a key, and the request does not prove to have it",
  proof_invalid: "The proof is not valid",
  proof_nonce: "The proof needs a current nonce",
  proof_replayed: "The proof was used before",
  proof_memory: "No more proofs can be remembered at the moment",
  multiple: "There is more than one token",
  // A request without a token gets a challenge without an error; if the token cannot be verified, the response is 503.
  missing: undefined,
  keys_unusable: undefined,
};
