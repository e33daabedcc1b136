import type { Endpoint } from "./endpoint.ts";
import type { GateError } from "./errors.ts";
import type { GateRequest } from "./gate-request.ts";
import type { Identity } from "./identity.ts";
import type { AuthReason, AuthResult } from "./outcome.ts";
import type { Permit } from "./permit.ts";
import type { ConcurrencyVerdict } from "../route/concurrency.ts";
import type { RateVerdict } from "../route/rate-limit.ts";
import type { Route } from "../route/route.ts";
import type { TokenRefusal, VerificationNotes } from "./token-verifier.ts";

/** The decision about a request, with the facts behind it. */
export interface Decision extends Readonly<VerificationNotes> {
  readonly request: GateRequest;
  /** The endpoint at the request's path, even if it refuses the request. */
  readonly endpoint: Endpoint | undefined;
  /** Whether a route was looked up; false for Sallyport's own endpoints. */
  readonly routed: boolean;
  readonly route: Route | undefined;
  /** The verified caller, even if the request is refused or passes as anonymous. */
  readonly identity: Identity | undefined;
  /** Why there is no verified caller, even on a route in monitor mode. */
  readonly tokenRefusal: TokenRefusal | undefined;
  /** The verdict of the rate limit; undefined if nothing was counted. */
  readonly rate: RateVerdict | undefined;
  /**
   * The verdict of the concurrency limit; undefined if nothing was counted. Whoever carries out the decision releases
   * it.
   */
  readonly inFlight: ConcurrencyVerdict | undefined;
  /** The result and reason for the metrics; undefined if no decision about the caller was made. */
  readonly auth: AuthResult | undefined;
  readonly reason: AuthReason | undefined;
  /** Forward the request, answer it with an endpoint, or refuse it. */
  readonly action: Permit | Endpoint | GateError;
}
