import { GateError } from "../../core/request/errors.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Identity } from "../../core/request/identity.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { ConcurrencyLimit, ConcurrencyVerdict } from "../../core/route/concurrency.ts";
import type { RateVerdict } from "../../core/route/rate-limit.ts";
import type { Route } from "../../core/route/route.ts";

/** Counts a request by the address of its client, if the route limits addresses. */
export function takeByAddress(
  route: Route | undefined,
  { network }: GateRequest,
): RateVerdict | undefined {
  const limit = route?.rateLimit;
  return limit?.by === "address" ? limit.take(network) : undefined;
}

/** Counts a request by its caller, if the route limits subjects. */
export function takeBySubject(
  { rateLimit }: Route,
  identity: Identity | undefined,
): RateVerdict | undefined {
  if (rateLimit?.by !== "subject" || identity === undefined) return undefined;
  return rateLimit.take(callerKey(identity));
}

/** Returns the refusal for an exceeded rate limit. */
export function rateLimited({ waitMs }: RateVerdict): GateError {
  return new GateError("rate_limited", { retryAfter: Math.ceil(waitMs / 1000) });
}

/** Counts a request among those in flight until its `release`, if the route limits them. */
export function takeInFlight(
  { concurrency }: Route,
  { network }: GateRequest,
  identity: Identity | undefined,
): ConcurrencyVerdict | undefined {
  if (concurrency === undefined) return undefined;
  const { by } = concurrency;
  if (by === "route") return new InFlight(concurrency, "");
  const key = by === "client" || identity === undefined ? network : callerKey(identity);
  return new InFlight(concurrency, key);
}

/** A request that is counted until it is released, unless the limit refuses it. */
class InFlight implements ConcurrencyVerdict {
  readonly allowed: boolean;
  readonly #limit: ConcurrencyLimit;
  readonly #key: string;
  #counted: boolean;

  constructor(limit: ConcurrencyLimit, key: string) {
    this.#limit = limit;
    this.#key = key;
    this.allowed = limit.take(key);
    this.#counted = this.allowed;
  }

  release(): void {
    if (this.#counted) this.#limit.release(this.#key);
    this.#counted = false;
  }
}

/** Returns the refusal of a body whose `Content-Length` exceeds the limit of the route. */
export function tooLarge({ request, route }: Permit): GateError | undefined {
  if (request.bodyLength <= route.bodyBytes) return undefined;
  return new GateError("body_too_large", { reason: "body_too_large" });
}

function callerKey({ issuer, subject }: Identity): string {
  // Issuer names contain no NUL, so the first one separates.
  return `${issuer}\0${subject}`;
}
