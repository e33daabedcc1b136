import type { ServerResponse } from "node:http";
import { GateError } from "../core/errors.ts";
import type { GateRequest } from "../core/gate-request.ts";
import type { Permit } from "../core/permit.ts";
import type { RateLimit } from "../core/rate-limit.ts";
import type { Route } from "../core/route.ts";

/** Counts a request by the address of its client, where the route says so. @throws GateError `rate_limited`. */
export function limitAddress(
  route: Route | undefined,
  request: GateRequest,
  response: ServerResponse,
): void {
  if (route?.rateLimit?.by !== "address") return;
  count(route.name, route.rateLimit, request.network, response);
}

/** Counts a request by who is asking, where the route says so. @throws GateError `rate_limited`. */
export function limitSubject({ route, identity }: Permit, response: ServerResponse): void {
  if (route.rateLimit?.by !== "subject" || identity === undefined) return;
  // No issuer's name holds a NUL, so the first one ends it.
  count(route.name, route.rateLimit, `${identity.issuer}\0${identity.subject}`, response);
}

/**
 * Tells the client where it stands, whatever the answer will be: the fields of draft-ietf-httpapi-ratelimit-headers-10.
 * `t` is what `Retry-After` says on a refusal, else the seconds until the whole burst is there again.
 */
function count(name: string, limit: RateLimit, key: string, response: ServerResponse): void {
  const { allowed, remaining, waitMs } = limit.take(key);
  const seconds = Math.ceil(waitMs / 1000);
  const { requests, withinMs } = limit;
  response.setHeader("RateLimit-Policy", `"${name}";q=${requests};w=${withinMs / 1000}`);
  response.setHeader("RateLimit", `"${name}";r=${remaining};t=${seconds}`);
  if (!allowed) throw new GateError("rate_limited", { retryAfter: seconds });
}
