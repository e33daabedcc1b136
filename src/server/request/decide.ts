import type { Endpoint, Gate } from "./gate.ts";
import { errorRow, GateError } from "../../core/request/errors.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import { BoundToken } from "../../core/request/bound-token.ts";
import { CERTIFICATE_ISSUER, Identity } from "../../core/request/identity.ts";
import { type AuthReason, type AuthResult, isAuthReason } from "../../core/request/outcome.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { TokenPlaces } from "../../core/request/token-place.ts";
import type { Route } from "../../core/route/route.ts";
import {
  keysUnusable,
  type TokenRefusal,
  type TokenVerdict,
  type UnprovenVerdict,
  type VerificationNotes,
  type VerificationTrace,
} from "../../core/request/token-verifier.ts";
import type { ConcurrencyLimit } from "../../policy/concurrency/concurrency-limiter.ts";
import type { RateLimit, RateVerdict } from "../../policy/rates/rate-limiter.ts";
import { AUTHENTICATE_PATH } from "../endpoints/authenticate.ts";
import { comesFromAnotherSite, isOfBrowser, proofIn } from "./own-origin.ts";
import { bearerToken, hasDpopScheme, REFUSAL_DESCRIPTIONS, tokenIn } from "./request-token.ts";
import type { IncomingRequest, UpgradeRequest } from "../../core/request/http-message.ts";
import { admitsSpelling, pathReadings } from "../../lib/http/path/canonical-path.ts";
import { ambiguous } from "./intake.ts";

/**
 * Makes sure that the route takes a path of this spelling, and that every reading of the path leads to the same route and to
 * none of Sallyport's own endpoints. So a backend that decodes more, or cuts something off, finds what was decided about.
 *
 * @throws GateError `bad_request`.
 */
function refuseOtherReadings(
  { findRoute, endpoints }: Pick<Gate, "findRoute" | "endpoints">,
  request: GateRequest,
  route: Route | undefined,
): void {
  if (!admitsSpelling(route?.paths ?? "strict", request.spelling)) throw ambiguous("path");
  const { host, method, rawHeaders } = request;
  for (const matchPath of [...pathReadings(request.matchPath), ...readingsBehind(route, request)]) {
    const other = findRoute({ host, method, rawHeaders, matchPath });
    if (other?.name !== route?.name || endpoints.has(matchPath)) throw ambiguous("path");
  }
}

/** A path that begins with two slashes, whatever stands for them. */
const BEGINS_WITH_TWO = /^\/(?:\/|%2F|%5C)/;

/** The readings of what the backend gets after the prefix was stripped: only there it may begin with a host. */
function readingsBehind(
  route: Route | undefined,
  { matchPath }: Pick<GateRequest, "matchPath">,
): readonly string[] {
  const { stripPrefix, addPrefix = "" } = route?.rewrite ?? {};
  if (stripPrefix === undefined || addPrefix !== "") return [];
  const rest = matchPath.startsWith(stripPrefix) ? matchPath.slice(stripPrefix.length) : "";
  if (!BEGINS_WITH_TWO.test(rest)) return [];
  return pathReadings(rest).map((reading) => `${stripPrefix}${reading}`);
}

/** The path in another case, or with a suffix that some servers strip: a slash, an extension, a final dot, encoded blanks. */
const OTHER_SPELLING = /^\/api\/authenticate(?:\/|\.[a-z0-9]*|%20)*$/i;
const MOST_BEHIND = 16;

/** Refuses another spelling of the login path: no backend may get the name and the password. @throws GateError `no_route`. */
function refuseMisspeltLogin(matchPath: string): void {
  // The length rules out most paths.
  const behind = matchPath.length - AUTHENTICATE_PATH.length;
  if (behind < 0 || behind > MOST_BEHIND || !OTHER_SPELLING.test(matchPath)) return;
  throw new GateError("no_route", { reason: "login_misspelt" });
}

/** The key of a caller in the limits of a route. */
function callerKey({ issuer, subject }: Identity): string {
  // Issuer names contain no NUL, so the first one separates.
  return `${issuer}\0${subject}`;
}

/** The gate that decides, and its input besides the request. */
export interface DecisionContext {
  readonly gate: Gate;
  /** Undefined if the request does not ask to switch protocols. */
  readonly upgrade: Pick<UpgradeRequest, "request"> | undefined;
  /** Whether the request does not count against the limits of its route. */
  readonly dryRun?: true;
  /** The caller that an earlier decision has accepted: their token may have expired since. */
  readonly accepted?: Identity | undefined;
  /** The decision that this one replaces, because something changed while it was made. */
  readonly decision?: Decision | undefined;
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
  const deciding = new Decision(request, context);
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

const UNBOUND: TokenRefusal = { step: "proof", reason: "unbound" };
const NO_CERTIFICATES: TokenRefusal = { step: "bearer", reason: "missing" };
const UNDECIDED = new GateError("internal");
const TOO_LARGE = new GateError("body_too_large");

/** The decision about a request, with the facts behind it. `decide` makes it. */
export class Decision implements VerificationNotes {
  readonly request: GateRequest;
  readonly trace: VerificationTrace | undefined;
  readonly #context: DecisionContext;
  /** Whether the caller has sent an API key. */
  #isKey = false;
  /** Whether the token comes with the scheme of tokens that need a proof. */
  #isDpop = false;
  /** The endpoint at the request's path, even if it refuses the request. */
  endpoint: Endpoint | undefined;
  /** Whether a route was looked up; false for Sallyport's own endpoints. */
  routed = false;
  route: Route | undefined;
  /** The verified caller, even if the request is refused or passes as anonymous. */
  identity: Identity | undefined;
  tokenCache: VerificationNotes["tokenCache"];
  /** Why there is no verified caller, even on a route in monitor mode. */
  tokenRefusal: TokenRefusal | undefined;
  /** The verdict of the rate limit; undefined if nothing was counted. */
  rate: RateVerdict | undefined;
  /** Ends the count among the requests in flight, once; undefined if there is none. The caller of `decide` must call it. */
  release: (() => void) | undefined;
  /** Whether the concurrency limit is exceeded. */
  #isOneTooMany = false;
  /** The result and reason for the metrics; undefined if no decision about the caller was made. */
  auth: AuthResult | undefined;
  reason: AuthReason | undefined;
  /** Forward the request, answer it with an endpoint, or refuse it. Until something is decided, it is refused. */
  action: Permit | Endpoint | GateError = UNDECIDED;

  constructor(request: GateRequest, context: DecisionContext) {
    this.request = request;
    this.trace = context.trace;
    this.#context = context;
  }

  get client(): string {
    return this.request.network;
  }

  /** Finds the endpoint or route, and verifies the token. @returns undefined if no token is needed. @throws GateError */
  authenticate(): TokenVerdict | undefined | Promise<TokenVerdict> {
    const { gate, upgrade } = this.#context;
    const { request } = this;
    const { clientCertificate } = request.connection;
    if (clientCertificate !== undefined) gate.certificates?.check(clientCertificate);
    const endpoint = gate.cors?.preflight(request) ?? gate.endpoints.get(request.matchPath);
    if (endpoint === undefined) {
      refuseMisspeltLogin(request.matchPath);
      this.routed = true;
      this.route = gate.findRoute(request);
      if (request.spelling !== "strict") refuseOtherReadings(gate, request, this.route);
      if (this.route?.networks?.admits(request.client) === false) {
        throw new GateError("network_denied");
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
    const { auth, tokenFrom: places } = endpoint ?? this.route ?? gate.nowhere;
    if (auth === "none") return undefined;
    if (auth === "certificate") return this.#callerByCertificate();
    const takesDpop = gate.tokens.proofs !== undefined;
    this.#isDpop = takesDpop && hasDpopScheme(request);
    const token = places === undefined ? bearerToken(request, takesDpop) : this.#tokenIn(places);
    if (typeof token === "string") {
      const verdict = gate.tokens.verify(token, request.connection, this);
      return verdict instanceof Promise
        ? verdict.then((each) => this.#proven(each))
        : this.#proven(verdict);
    }
    if (!("reason" in token)) return this.#proven(token);
    return auth === "optional" && token.reason === "missing" ? undefined : token;
  }

  /** Returns the caller of a token, if the request has the proof that it needs. */
  #proven(verdict: UnprovenVerdict): TokenVerdict | Promise<TokenVerdict> {
    const { gate, accepted, decision, dryRun = false } = this.#context;
    const { proofs } = gate.tokens;
    if (!(verdict instanceof BoundToken)) {
      return this.#isDpop && verdict instanceof Identity ? UNBOUND : verdict;
    }
    if (proofs === undefined) return { step: "claims", reason: "sender_constrained" };
    const earlier = accepted ?? decision?.identity;
    const proof = proofIn(this.request, gate.isOwnHost);
    return proofs.prove(verdict, { ...proof, isDpop: this.#isDpop, earlier, dryRun });
  }

  /** Returns the token, or what an API key says. @throws GateError `cross_site` if another site's page may have had the browser send a cookie. */
  #tokenIn(places: TokenPlaces): string | UnprovenVerdict {
    const { gate } = this.#context;
    const { request } = this;
    const found = tokenIn(request, places, gate.tokens.proofs !== undefined);
    if (!("token" in found)) return found;
    const { authorization, keysInAuthorization } = places;
    this.#isDpop &&= found.place === authorization || found.place === keysInAuthorization;
    if ("cookie" in found.place) this.#refuseOtherSites();
    if (!("apiKey" in found.place)) return found.token;
    this.#isKey = true;
    return gate.verifyApiKey?.(found.token) ?? { step: "key", reason: "unknown_key" };
  }

  /** Returns the caller by the certificate. @throws GateError `cross_site` if another site's page may have had the browser show it. */
  #callerByCertificate(): TokenVerdict {
    const { gate } = this.#context;
    const { request } = this;
    const { clientCertificate } = request.connection;
    // A browser shows a certificate to whatever site makes it, as it does with cookies.
    if (clientCertificate !== undefined && isOfBrowser(request)) this.#refuseOtherSites();
    return gate.certificates?.verify(clientCertificate) ?? NO_CERTIFICATES;
  }

  /** @throws GateError `cross_site` if another site's page may have had the browser send the request. */
  #refuseOtherSites(): void {
    const { gate, upgrade } = this.#context;
    if (comesFromAnotherSite(this.request, upgrade !== undefined, gate.cors)) {
      throw new GateError("cross_site");
    }
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
    if (!(permit instanceof Promise)) return this.#let(permit, result, "ok");
    return permit
      .then((each) => this.#let(each, result, "ok"))
      .catch((error: unknown) => this.refuse(error));
  }

  /** Does the same for a token that must be verified first. Rejects only for an internal error. */
  admitLater(verdict: Promise<TokenVerdict>): Promise<Decision> {
    return verdict.then((each) => this.admit(each)).catch((error: unknown) => this.refuse(error));
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

  /** The caller of a token that was refused, if accepted here. @throws GateError `unauthenticated`, `invalid_token` or `invalid_certificate`. */
  #callerDespite(refusal: TokenRefusal): Identity {
    const { reason, revoked, dpop } = refusal;
    const { accepted, gate } = this.#context;
    if (revoked?.caller && this.endpoint?.acceptsRevoked === true) {
      if (this.trace !== undefined) this.trace.pardoned = refusal.step;
      return revoked.caller;
    }
    const isCertificate = this.route?.auth === "certificate";
    const isOfToken = !isCertificate && accepted?.issuer !== CERTIFICATE_ISSUER;
    // A token has its end in itself; that of a key may have been set since.
    if (reason === "expired" && accepted !== undefined && isOfToken && !this.#isKey) {
      return accepted;
    }
    this.tokenRefusal = refusal;
    const scope = isCertificate ? undefined : gate.metadata?.scopesFor(this.route);
    if (reason === "missing") throw new GateError("unauthenticated", { reason, scope });
    if (isCertificate) throw new GateError("invalid_certificate", { reason });
    const description = gate.describesRefusals ? REFUSAL_DESCRIPTIONS[reason] : undefined;
    throw new GateError("invalid_token", { reason, description, scope, dpop });
  }

  /** Permits the request unless a limit or an unknown protocol refuses it. */
  #let(permit: Permit, result: AuthResult, reason: AuthReason): Decision {
    const { upgrade } = this.#context;
    const { request, route } = permit;
    const { rateLimit, concurrency } = route;
    this.action =
      (rateLimit && this.#countBySubject(rateLimit, permit)) ??
      (upgrade && upgradeRefusal(request, upgrade.request)) ??
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
    const { identity } = this;
    const isAnonymous = limit.by === "client" || identity === undefined;
    let key = "";
    if (limit.by !== "route") key = isAnonymous ? this.request.network : callerKey(identity);
    this.#isOneTooMany = !limit.take(key);
    if (!this.#isOneTooMany) {
      this.release = () => {
        this.release = undefined;
        limit.release(key);
      };
    } else if (this.route?.mode !== "monitor") {
      return new GateError("concurrency_limited", { retryAfter: 1 });
    }
    return undefined;
  }

  /** The limit of the route that the request exceeds. */
  #exceeded(): AuthReason | undefined {
    if (this.rate?.allowed === false) return "rate_limited";
    return this.#isOneTooMany ? "concurrency_limited" : undefined;
  }

  #decided(result: AuthResult, reason: AuthReason): this {
    this.auth = result;
    this.reason = reason;
    return this;
  }
}

/**
 * Refuses a request to switch protocols unless it opens a WebSocket (RFC 6455 §4.1): a GET without a body that asks for
 * `websocket` alone, with exactly one key. Of two, the backend could answer one while its answer is checked against the other.
 */
function upgradeRefusal(request: GateRequest, incoming: IncomingRequest): GateError | undefined {
  const wanted = incoming.headers.upgrade?.toLowerCase();
  const keys = incoming.headersDistinct["sec-websocket-key"];
  const fits = request.method === "GET" && request.bodyLength === 0 && keys?.length === 1;
  // HTTP/1.0 knows no upgrades (RFC 9110 §7.8).
  const isOpened = wanted === "websocket" && fits && incoming.httpVersion !== "1.0";
  return isOpened ? undefined : new GateError("upgrade_unsupported");
}
