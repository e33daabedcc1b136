import type { Endpoint } from "./endpoint.ts";
import type { GateError } from "./errors.ts";
import type { UpgradeRequest } from "./forwarder.ts";
import type { Gate } from "./gate.ts";
import type { GateRequest } from "./gate-request.ts";
import type { Identity } from "./identity.ts";
import type { AuthReason, AuthResult } from "./outcome.ts";
import type { Permit } from "./permit.ts";
import type { ConcurrencyVerdict } from "../route/concurrency.ts";
import type { RateVerdict } from "../route/rate-limit.ts";
import type { Route } from "../route/route.ts";
import type { TokenRefusal, VerificationNotes, VerificationTrace } from "./token-verifier.ts";

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
   * The verdict of the concurrency limit; undefined if nothing was counted. The caller of `decide` must
   * release it.
   */
  readonly inFlight: ConcurrencyVerdict | undefined;
  /** The result and reason for the metrics; undefined if no decision about the caller was made. */
  readonly auth: AuthResult | undefined;
  readonly reason: AuthReason | undefined;
  /** Forward the request, answer it with an endpoint, or refuse it. */
  readonly action: Permit | Endpoint | GateError;
}
