import type { Decision } from "../../core/request/decision.ts";
import type { Endpoint } from "../../core/request/endpoint.ts";
import { GateError } from "../../core/request/errors.ts";
import type { Gate } from "../../core/request/gate.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { IncomingRequest } from "../../core/request/http-message.ts";
import { Identity } from "../../core/request/identity.ts";
import { type AuthReason, type AuthResult } from "../../core/request/outcome.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { ConcurrencyVerdict } from "../../core/route/concurrency.ts";
import type { RateVerdict } from "../../core/route/rate-limit.ts";
import type { Route } from "../../core/route/route.ts";
import {
  keysUnusable,
  type TokenRefusal,
  type TokenVerdict,
  type VerificationTrace,
} from "../../core/request/token-verifier.ts";
import { andThen } from "../../lib/async/and-then.ts";
import { denialOf, undecidedOf } from "./denial.ts";
import { ownEndpoint } from "../endpoints/own-endpoint.ts";
import { refusalDescription } from "./refusal-description.ts";
import { otherProtocol } from "./other-protocol.ts";
import { refuseOtherReadings } from "./path-readings.ts";
import { bearerToken, tokenIn } from "./request-token.ts";
import {
  rateLimited,
  takeByAddress,
  takeBySubject,
  takeInFlight,
  tooLarge,
} from "./route-limits.ts";
import { isSameOrigin, needsSameOrigin } from "./same-origin.ts";

/** The gate that decides, and its input besides the request. */
export interface DecisionContext {
  readonly gate: Gate;
  /** The message, if it asks to switch protocols. */
  readonly switching: IncomingRequest | undefined;
  /** Whether the request counts against the limits of its route. A dry run does not. */
  readonly counted: boolean;
  /** The caller that an earlier decision has accepted: their token may have expired since. */
  readonly accepted?: Identity | undefined;
  /** Records how the token is verified. */
  readonly trace?: VerificationTrace | undefined;
}

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
      const refusal = this.#tooManyRequests();
      if (refusal !== undefined) throw refusal;
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
    if (typeof token === "string") {
      this.trace?.passed.push("bearer");
      return gate.tokens.verify(token, request.connection, this);
    }
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
    if (error.code === "keys_unusable") this.tokenRefusal = keysUnusable(this.trace);
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
    const { reason } = verdict;
    const { accepted } = this.#context;
    if (reason === "expired" && accepted !== undefined) return accepted;
    this.tokenRefusal = verdict;
    if (reason === "missing") throw new GateError("unauthenticated", { reason });
    const description = this.#context.gate.describesRefusals
      ? refusalDescription(verdict)
      : undefined;
    throw new GateError("invalid_token", { reason, description });
  }

  /** Permits the request unless a limit or an unknown protocol refuses it. */
  #let(permit: Permit, result: AuthResult, reason: AuthReason): Decision {
    if (this.#context.counted) this.rate ??= takeBySubject(permit.route, this.identity);
    this.action =
      this.#tooManyRequests() ??
      otherProtocol(this.request, this.#context.switching) ??
      tooLarge(permit) ??
      this.#tooManyInFlight(permit) ??
      permit;
    const exceeded = permit.route.mode === "monitor" && reason === "ok" && this.#exceeded();
    return exceeded ? this.#decided("would_deny", exceeded) : this.#decided(result, reason);
  }

  /** The refusal for an exceeded rate limit. Routes in monitor mode have none. */
  #tooManyRequests(): GateError | undefined {
    if (this.rate?.allowed !== false || this.route?.mode === "monitor") return undefined;
    return rateLimited(this.rate);
  }

  /** Counts the request among those in flight. Must come last, because a request that is refused is never released. */
  #tooManyInFlight({ route, request }: Permit): GateError | undefined {
    if (!this.#context.counted) return undefined;
    this.inFlight = takeInFlight(route, request, this.identity);
    if (this.inFlight?.allowed !== false || route.mode === "monitor") return undefined;
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
