import type { Decision, DecisionContext } from "../../core/request/decision.ts";
import type { Endpoint } from "../../core/request/endpoint.ts";
import { errorRow, GateError } from "../../core/request/errors.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import { Identity } from "../../core/request/identity.ts";
import { type AuthReason, type AuthResult, isAuthReason } from "../../core/request/outcome.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { TokenPlaces } from "../../core/request/token-place.ts";
import type { ConcurrencyLimit, ConcurrencyVerdict } from "../../core/route/concurrency.ts";
import type { RateLimit, RateVerdict } from "../../core/route/rate-limit.ts";
import type { Route } from "../../core/route/route.ts";
import {
  keysUnusable,
  type TokenRefusal,
  type TokenVerdict,
  type VerificationTrace,
} from "../../core/request/token-verifier.ts";
import { refuseMisspeltLogin } from "../endpoints/authenticate.ts";
import { otherProtocol } from "./other-protocol.ts";
import { refuseOtherReadings } from "./path-readings.ts";
import { bearerToken, refusalDescription, tokenIn } from "./request-token.ts";
import { callerKey, takeInFlight } from "./route-limits.ts";
import { comesFromAnotherSite } from "./same-origin.ts";

/**
 * Decides about one request: synchronously, unless its token must be verified first. Sends nothing, and changes only the
 * counts of the route's limits and the cache of tokens.
 * @throws or rejects only for an internal error; a refusal is a decision.
 */
export function decide(
  request: GateRequest,
  context: DecisionContext,
): Decision | Promise<Decision> {
  const deciding = new Deciding(request, context);
  try {
    const verdict = deciding.authenticate();
    return verdict instanceof Promise ? deciding.admitLater(verdict) : deciding.admit(verdict);
  } catch (error) {
    return deciding.refuse(error);
  }
}

/** The reason to count if an error refuses the caller; undefined for any other error. */
export function denialOf({ code, reason }: GateError): AuthReason | undefined {
  return errorRow(code).deniesCaller === true && isAuthReason(reason) ? reason : undefined;
}

/** No route: a token is needed all the same. */
const NOWHERE: Pick<Route, "auth" | "tokenFrom"> = { auth: "required" };
const UNDECIDED = new GateError("internal");
const TOO_LARGE = new GateError("body_too_large", { reason: "body_too_large" });

/** A decision while it is made. */
class Deciding implements Decision {
  readonly request: GateRequest;
  readonly client: string;
  readonly trace: VerificationTrace | undefined;
  readonly #context: DecisionContext;
  endpoint: Endpoint | undefined;
  routed = false;
  route: Route | undefined;
  identity: Identity | undefined;
  tokenCache: "hit" | "miss" | undefined;
  tokenRefusal: TokenRefusal | undefined;
  rate: RateVerdict | undefined;
  inFlight: ConcurrencyVerdict | undefined;
  auth: AuthResult | undefined;
  reason: AuthReason | undefined;
  /** Until something is decided, the request is refused. */
  action: Permit | Endpoint | GateError = UNDECIDED;

  constructor(request: GateRequest, context: DecisionContext) {
    this.request = request;
    this.client = request.network;
    this.trace = context.trace;
    this.#context = context;
  }

  /** Finds the endpoint or route, and verifies the token. @returns undefined if no token is needed. @throws GateError */
  authenticate(): TokenVerdict | undefined | Promise<TokenVerdict> {
    const { gate, upgrade } = this.#context;
    const { request } = this;
    const endpoint = gate.cors?.preflight(request) ?? gate.endpoints.get(request.matchPath);
    if (endpoint === undefined) {
      refuseMisspeltLogin(request.matchPath);
      this.routed = true;
      this.route = gate.findRoute(request);
      if (request.spelling !== "strict") refuseOtherReadings(gate, request, this.route);
      if (this.route?.networks?.admits(request.client) === false) {
        throw new GateError("network_denied", { reason: "network_denied" });
      }
      // Before the token is verified, so that requests with a bad token count as well.
      if (this.route?.rateLimit?.by === "address") {
        const refusal = this.#countRate(this.route.rateLimit, request.network);
        if (refusal !== undefined) throw refusal;
      }
    } else {
      if (upgrade !== undefined) throw new GateError("upgrade_unsupported");
      this.endpoint = endpoint;
      if (!endpoint.methods.includes(request.method)) {
        throw new GateError("method_not_allowed", { allow: endpoint.methods.join(", ") });
      }
    }
    const { auth, tokenFrom: places } = endpoint ?? this.route ?? NOWHERE;
    if (auth === "none") return undefined;
    const token = places === undefined ? bearerToken(request) : this.#tokenIn(places);
    if (typeof token === "string") {
      this.trace?.passed.push("bearer");
      return gate.tokens.verify(token, request.connection, this);
    }
    return auth === "optional" && token.reason === "missing" ? undefined : token;
  }

  /** @throws GateError `cross_site` if another site's page may have had the browser send a cookie. */
  #tokenIn(places: TokenPlaces): string | TokenRefusal {
    const { gate, upgrade } = this.#context;
    const { request } = this;
    const found = tokenIn(request, places);
    if (!("token" in found)) return found;
    const isSwitching = upgrade !== undefined;
    if ("cookie" in found.place && comesFromAnotherSite(request, isSwitching, gate.cors)) {
      throw new GateError("cross_site", { reason: "cross_site" });
    }
    return found.token;
  }

  /** Decides about the caller, and whether they may make the request. @throws GateError */
  admit(verdict: TokenVerdict | undefined): Decision | Promise<Decision> {
    const hasCaller = verdict === undefined || verdict instanceof Identity;
    this.identity = hasCaller ? verdict : this.#callerDespite(verdict);
    const result = verdict === undefined ? "skipped" : "allowed";
    if (this.endpoint !== undefined) {
      this.action = this.endpoint;
      return this.#decided(result, "ok");
    }
    const permit = this.#context.gate.authorize(this.request, this.route, this.identity);
    return permit instanceof Promise
      ? this.#letLater(permit, result)
      : this.#let(permit, result, "ok");
  }

  /** Does the same for a token that must be verified first. Rejects only for an internal error. */
  async admitLater(verdict: Promise<TokenVerdict>): Promise<Decision> {
    try {
      return await this.admit(await verdict);
    } catch (error) {
      return this.refuse(error);
    }
  }

  async #letLater(permit: Promise<Permit>, result: AuthResult): Promise<Decision> {
    try {
      return this.#let(await permit, result, "ok");
    } catch (error) {
      return this.refuse(error);
    }
  }

  /** Refuses the request, unless its route is in monitor mode and the refusal is about the caller. */
  refuse(error: unknown): Decision {
    if (!(error instanceof GateError)) throw error;
    const { code } = error;
    if (code === "keys_unusable") this.tokenRefusal = keysUnusable(this.trace);
    const isUndecided = code === "keys_unusable" || code === "authorization_unavailable";
    const denial = denialOf(error);
    const watched = isUndecided ? code : denial;
    if (this.route?.mode === "monitor" && watched !== undefined) {
      const permit = this.#context.gate.letPass(this.request, this.route);
      return this.#let(permit, "would_deny", watched);
    }
    this.action = error;
    return denial === undefined ? this : this.#decided("denied", denial);
  }

  /** The caller of a token that was refused, if it is accepted here. @throws GateError `unauthenticated` or `invalid_token`. */
  #callerDespite(refusal: TokenRefusal): Identity {
    const { reason, revoked } = refusal;
    const { accepted, gate } = this.#context;
    if (revoked !== undefined && this.endpoint?.acceptsRevoked === true) return revoked.caller;
    if (reason === "expired" && accepted !== undefined) return accepted;
    this.tokenRefusal = refusal;
    if (reason === "missing") throw new GateError("unauthenticated", { reason });
    const description = gate.describesRefusals ? refusalDescription(refusal) : undefined;
    throw new GateError("invalid_token", { reason, description });
  }

  /** Permits the request unless a limit or an unknown protocol refuses it. */
  #let(permit: Permit, result: AuthResult, reason: AuthReason): Decision {
    const { upgrade } = this.#context;
    const { request, route } = permit;
    const { rateLimit, concurrency } = route;
    this.action =
      (rateLimit && this.#countBySubject(rateLimit, permit)) ??
      (upgrade && otherProtocol(request, upgrade.request)) ??
      (request.bodyLength > route.bodyBytes ? TOO_LARGE : undefined) ??
      (concurrency && this.#countInFlight(concurrency)) ??
      permit;
    const exceeded = route.mode === "monitor" && reason === "ok" && this.#exceeded();
    return exceeded ? this.#decided("would_deny", exceeded) : this.#decided(result, reason);
  }

  /** Counts a caller without a token by address, where the token is optional. */
  #countBySubject(limit: RateLimit, { request, route }: Permit): GateError | undefined {
    const { identity } = this;
    if (limit.by !== "subject") return undefined;
    if (identity !== undefined) return this.#countRate(limit, callerKey(identity));
    return route.auth === "optional" ? this.#countRate(limit, request.network) : undefined;
  }

  /** Counts the request, once, against the rate limit. @returns the refusal; none on a route in monitor mode. */
  #countRate(limit: RateLimit, key: string): GateError | undefined {
    const { dryRun, decision: before } = this.#context;
    if (dryRun) return undefined;
    const { allowed, waitMs } = (this.rate = before?.rate ?? limit.take(key));
    if (allowed || this.route?.mode === "monitor") return undefined;
    return new GateError("rate_limited", { retryAfter: Math.ceil(waitMs / 1000) });
  }

  /** Counts the request among those in flight. Must come last, because a request that is refused is never released. */
  #countInFlight(limit: ConcurrencyLimit): GateError | undefined {
    if (this.#context.dryRun) return undefined;
    this.inFlight = takeInFlight(limit, this.request, this.identity);
    if (this.inFlight.allowed || this.route?.mode === "monitor") return undefined;
    return new GateError("concurrency_limited", { retryAfter: 1 });
  }

  /** The limit of the route that the request exceeds. */
  #exceeded(): AuthReason | undefined {
    if (this.rate?.allowed === false) return "rate_limited";
    return this.inFlight?.allowed === false ? "concurrency_limited" : undefined;
  }

  #decided(result: AuthResult, reason: AuthReason): this {
    this.auth = result;
    this.reason = reason;
    return this;
  }
}
