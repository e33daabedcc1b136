import type { Decision } from "../../core/request/decision.ts";
import type { Endpoint } from "../../core/request/endpoint.ts";
import { GateError } from "../../core/request/errors.ts";
import type { Gate } from "../../core/request/gate.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { IncomingRequest } from "../../core/request/http-message.ts";
import { Identity } from "../../core/request/identity.ts";
import { type AuthReason, type AuthResult } from "../../core/request/outcome.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { RateVerdict } from "../../core/route/rate-limit.ts";
import type { Route } from "../../core/route/route.ts";
import type { TokenRefusal, TokenVerdict } from "../../core/request/token-verifier.ts";
import { andThen } from "../../lib/async/and-then.ts";
import { denialOf, undecidedOf } from "./denial.ts";
import { AUTHENTICATE_PATH } from "../endpoints/authenticate.ts";
import { refusalDescription } from "./refusal-description.ts";
import { refuseOtherReadings } from "./path-readings.ts";
import { opensWebSocket } from "./opens-websocket.ts";
import { bearerToken, tokenIn } from "./request-token.ts";
import { isSameOrigin, needsSameOrigin } from "./same-origin.ts";

/** The gate that decides, and its input besides the request. */
export interface DecisionContext {
  readonly gate: Gate;
  /** The message, if it asks to switch protocols. */
  readonly switching: IncomingRequest | undefined;
  /** Whether the request counts against rate limits. A dry run does not. */
  readonly counted: boolean;
}

/**
 * Decides about one request: synchronously, unless its token must be verified first. Sends nothing, and changes only the
 * counts of rate limits and the cache of tokens.
 * @throws or rejects only for an internal error; a refusal is a decision.
 */
export function decide(
  request: GateRequest,
  context: DecisionContext,
): Decision | Promise<Decision> {
  const deciding = new Deciding(request, context);
  try {
    const decision = andThen(deciding.authenticate(), admit, deciding);
    if (!(decision instanceof Promise)) return decision;
    return decision.catch((error: unknown) => deciding.refuse(error));
  } catch (error) {
    return deciding.refuse(error);
  }
}

function admit(
  deciding: Deciding,
  verdict: TokenVerdict | undefined,
): Decision | Promise<Decision> {
  return deciding.admit(verdict);
}

const UNDECIDED = new GateError("internal");

/** A decision while it is made. */
class Deciding implements Decision {
  readonly request: GateRequest;
  readonly client: string;
  readonly #context: DecisionContext;
  endpoint: Endpoint | undefined;
  routed = false;
  route: Route | undefined;
  identity: Identity | undefined;
  tokenCache: "hit" | "miss" | undefined;
  tokenRefusal: TokenRefusal | undefined;
  rate: RateVerdict | undefined;
  auth: AuthResult | undefined;
  reason: AuthReason | undefined;
  /** Until something is decided, the request is refused. */
  action: Permit | Endpoint | GateError = UNDECIDED;

  constructor(request: GateRequest, context: DecisionContext) {
    this.request = request;
    this.client = request.network;
    this.#context = context;
  }

  /** Finds the endpoint or route, and verifies the token. @returns undefined if no token is needed. @throws GateError */
  authenticate(): TokenVerdict | undefined | Promise<TokenVerdict> {
    const { gate, counted, switching } = this.#context;
    const { request } = this;
    const endpoint = gate.cors?.preflight(request) ?? ownEndpoint(gate, request.matchPath);
    if (endpoint === undefined) {
      this.routed = true;
      this.route = gate.findRoute(request);
      if (request.spelling !== "strict") refuseOtherReadings(gate, request, this.route);
      if (this.route?.networks?.admits(request.client) === false) {
        throw new GateError("network_denied", { reason: "network_denied" });
      }
      // Before the token is verified, so that requests with a bad token count as well.
      if (counted) this.rate = takeByAddress(this.route, request);
      const tooMany = this.#tooMany();
      if (tooMany !== undefined) throw tooMany;
    } else {
      if (switching !== undefined) throw new GateError("upgrade_unsupported");
      this.endpoint = endpoint;
      if (!endpoint.methods.includes(request.method)) {
        throw new GateError("method_not_allowed", { allow: endpoint.methods.join(", ") });
      }
    }
    const auth = (endpoint ?? this.route)?.auth;
    if (auth === "none") return undefined;
    const token = this.#token();
    if (typeof token === "string") return gate.tokens.verify(token, request.connection, this);
    return auth === "optional" && token.reason === "missing" ? undefined : token;
  }

  /** @throws GateError `cross_site`. */
  #token(): string | TokenRefusal {
    const places = this.route?.tokenFrom;
    if (places === undefined) return bearerToken(this.request);
    const found = tokenIn(this.request, places);
    if (!("token" in found)) return found;
    if ("cookie" in found.place) this.#refuseOtherSites();
    return found.token;
  }

  /** @throws GateError `cross_site` where another site's page may have had the browser send a cookie. */
  #refuseOtherSites(): void {
    const { gate, switching } = this.#context;
    if (!needsSameOrigin(this.request, switching !== undefined)) return;
    if (isSameOrigin(this.request, (origin) => gate.cors?.trusts(origin) === true)) return;
    throw new GateError("cross_site", { reason: "cross_site" });
  }

  /** Decides about the caller. */
  admit(verdict: TokenVerdict | undefined): Decision | Promise<Decision> {
    this.identity = verdict === undefined ? undefined : this.#accepted(verdict);
    const result = verdict === undefined ? "skipped" : "allowed";
    if (this.endpoint !== undefined) {
      this.action = this.endpoint;
      return this.#decided(result, "ok");
    }
    const permit = this.#context.gate.authorize(this.request, this.route, this.identity);
    return permit instanceof Promise
      ? permit.then((later) => this.#let(later, result, "ok"))
      : this.#let(permit, result, "ok");
  }

  /** Refuses the request, unless its route is in monitor mode and the refusal is about the caller. */
  refuse(error: unknown): Decision {
    if (!(error instanceof GateError)) throw error;
    if (error.code === "keys_unusable") this.tokenRefusal = { step: "key", reason: error.code };
    const { route } = this;
    const denial = denialOf(error);
    const watched = denial ?? undecidedOf(error);
    if (route?.mode === "monitor" && watched !== undefined) {
      const permit = this.#context.gate.letPass(this.request, route);
      return this.#let(permit, "would_deny", watched);
    }
    this.action = error;
    return denial === undefined ? this : this.#decided("denied", denial);
  }

  /** @throws GateError `unauthenticated` or `invalid_token`. */
  #accepted(verdict: TokenVerdict): Identity {
    if (verdict instanceof Identity) return verdict;
    if (verdict.revoked !== undefined && this.endpoint?.acceptsRevoked === true) {
      return verdict.revoked.caller;
    }
    this.tokenRefusal = verdict;
    const { reason } = verdict;
    if (reason === "missing") throw new GateError("unauthenticated", { reason });
    const description = this.#context.gate.describesRefusals
      ? refusalDescription(verdict)
      : undefined;
    throw new GateError("invalid_token", { reason, description });
  }

  /** Permits the request unless a rate limit or an unknown protocol refuses it. */
  #let(permit: Permit, result: AuthResult, reason: AuthReason): Decision {
    if (this.#context.counted) this.rate ??= takeBySubject(permit.route, this.identity);
    const watched =
      permit.route.mode === "monitor" && reason === "ok" && this.rate?.allowed === false;
    if (watched) this.#decided("would_deny", "rate_limited");
    else this.#decided(result, reason);
    this.action = this.#tooMany() ?? this.#unknownProtocol() ?? permit;
    return this;
  }

  /** The refusal for an exceeded rate limit. Routes in monitor mode have none. */
  #tooMany(): GateError | undefined {
    if (this.rate?.allowed !== false || this.route?.mode === "monitor") return undefined;
    return new GateError("rate_limited", { retryAfter: secondsOf(this.rate) });
  }

  #unknownProtocol(): GateError | undefined {
    const { switching } = this.#context;
    if (switching === undefined || opensWebSocket(this.request, switching)) return undefined;
    return new GateError("upgrade_unsupported");
  }

  #decided(result: AuthResult, reason: AuthReason): this {
    this.auth = result;
    this.reason = reason;
    return this;
  }
}

/** The path in another case, or with a suffix that some servers strip: a slash, an extension, a final dot, encoded blanks. */
const OTHER_SPELLING = /^\/api\/authenticate(?:\/|\.[a-z0-9]*|%20)*$/i;
const MOST_BEHIND = 16;

/**
 * Sallyport's own endpoint at a path; undefined if there is none.
 *
 * @throws GateError `no_route` for another spelling of the login path: such a request holds a name and a password, which no
 *   backend may get.
 */
function ownEndpoint(
  { endpoints }: Pick<Gate, "endpoints">,
  matchPath: string,
): Endpoint | undefined {
  const endpoint = endpoints.get(matchPath);
  // The length rules out most paths.
  const behind = matchPath.length - AUTHENTICATE_PATH.length;
  if (endpoint !== undefined || behind < 0 || behind > MOST_BEHIND) return endpoint;
  if (OTHER_SPELLING.test(matchPath)) throw new GateError("no_route", { reason: "login_misspelt" });
  return undefined;
}

/** Counts a request by the address of its client, if the route limits addresses. */
function takeByAddress(
  route: Route | undefined,
  { network }: GateRequest,
): RateVerdict | undefined {
  const limit = route?.rateLimit;
  return limit?.by === "address" ? limit.take(network) : undefined;
}

/** Counts a request by its caller, if the route limits subjects. */
function takeBySubject(
  { rateLimit }: Route,
  identity: Identity | undefined,
): RateVerdict | undefined {
  if (rateLimit?.by !== "subject" || identity === undefined) return undefined;
  // Issuer names contain no NUL, so the first one separates.
  return rateLimit.take(`${identity.issuer}\0${identity.subject}`);
}

/** The seconds for `Retry-After`. */
function secondsOf({ waitMs }: RateVerdict): number {
  return Math.ceil(waitMs / 1000);
}
