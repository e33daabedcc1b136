import { type ErrorCode, GateError } from "../core/errors.ts";
import type { Gate } from "../core/gate.ts";
import type { GateRequest } from "../core/gate-request.ts";
import { Identity } from "../core/identity.ts";
import type { Observer } from "../core/observer.ts";
import { AUTH_REASONS, type AuthReason, type AuthResult } from "../core/outcome.ts";
import type { Permit } from "../core/permit.ts";
import type { Route } from "../core/route.ts";
import type { TokenRefusal } from "../core/token-verifier.ts";
import { bearerToken } from "./bearer.ts";
import type { Progress } from "./progress.ts";

/** Finds out who is asking and whether they may, and says so in the log line and the metrics. */
export class Admission {
  readonly #observer: Pick<Observer, "authDecided">;

  constructor(observer: Pick<Observer, "authDecided">) {
    this.#observer = observer;
  }

  /**
   * Lets a request through to a backend, at once when its token was verified before: that costs no turn of the loop.
   * @throws GateError, or rejects with one, as `callerFor` and `gate.authorize` do.
   */
  admit(
    gate: Gate,
    request: GateRequest,
    route: Route | undefined,
    progress: Progress,
  ): Permit | Promise<Permit> {
    if (route?.mode === "monitor") return this.#watch(gate, request, route, progress);
    const caller = this.callerFor(route?.auth, gate, request, progress);
    const decide = (identity: Identity | undefined): Permit => {
      const permit = gate.authorize(request, route, identity);
      if (identity !== undefined) this.#decided(progress, "allowed", "ok");
      return permit;
    };
    return caller instanceof Promise ? caller.then(decide) : decide(caller);
  }

  /** The verified caller; undefined where nobody needs to be one. At once, or when the token has been verified. */
  callerFor(
    auth: "required" | "none" | undefined,
    gate: Gate,
    request: GateRequest,
    progress: Progress,
  ): Identity | undefined | Promise<Identity> {
    if (auth === "none") {
      this.#decided(progress, "skipped", "ok");
      return undefined;
    }
    const verdict = gate.tokens.verify(bearerToken(request), request.connection);
    if (verdict instanceof Promise) return verdict.then((later) => accepted(later, progress));
    return accepted(verdict, progress);
  }

  /** Counts an error that says that the caller may not; others say something else. */
  refused(error: GateError, progress: Progress): void {
    const reason = deniedReason(error);
    if (reason !== undefined) this.#decided(progress, "denied", reason);
  }

  allowed(progress: Progress): void {
    this.#decided(progress, "allowed", "ok");
  }

  /** On a route that is only watched, a refusal is told and the request goes on as nobody's. */
  async #watch(
    gate: Gate,
    request: GateRequest,
    route: Route,
    progress: Progress,
  ): Promise<Permit> {
    try {
      const identity = await this.callerFor(route.auth, gate, request, progress);
      const permit = gate.authorize(request, route, identity);
      this.#decided(progress, "allowed", "ok");
      return permit;
    } catch (error) {
      const reason = error instanceof GateError ? deniedReason(error) : undefined;
      if (reason === undefined) throw error;
      this.#decided(progress, "would_deny", reason);
      return gate.letPass(request, route);
    }
  }

  #decided(progress: Progress, result: AuthResult, reason: AuthReason): void {
    progress.auth = result;
    progress.reason = reason;
    this.#observer.authDecided(result, reason);
  }
}

/** @throws GateError `invalid_token` for a refusal. */
function accepted(verdict: Identity | TokenRefusal, progress: Progress): Identity {
  if (!(verdict instanceof Identity)) throw new GateError("invalid_token", { reason: verdict });
  progress.subject = verdict.subject;
  return verdict;
}

/** The reason word when the error says that the caller may not, undefined when it says something else. */
function deniedReason(error: GateError): AuthReason | undefined {
  if (!DENIALS.has(error.code)) return undefined;
  return AUTH_REASONS.find((word) => word === error.reason);
}

const DENIALS: ReadonlySet<ErrorCode> = new Set(["unauthenticated", "invalid_token", "forbidden"]);
