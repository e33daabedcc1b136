import { GateError } from "../core/request/errors.ts";
import type { GateRequest } from "../core/request/gate-request.ts";
import type { Identity } from "../core/request/identity.ts";
import { mintPermit, type Permit } from "../core/request/permit.ts";
import type { Authorizer, Route } from "../core/route/route.ts";
import { challengedScopes, meets } from "./requirements.ts";

/**
 * Decides whether a request may pass. This is the only function that grants a permit in enforce mode.
 *
 * @param route the route of the request, or undefined if there is none.
 * @param identity the verified caller, or undefined if there is none: only a public route or one with an optional token
 *   admits such a request.
 * @throws or rejects with GateError `unauthenticated`, `no_route`, `forbidden` or `authorization_unavailable`.
 */
export function authorize(
  request: GateRequest,
  route: Route | undefined,
  identity: Identity | undefined,
): Permit | Promise<Permit> {
  if (route?.auth === "none") return mintPermit(request, route, undefined);
  if (identity === undefined) {
    if (route?.auth === "optional") return mintPermit(request, route, undefined);
    throw new GateError("unauthenticated", { reason: "missing" });
  }
  if (route === undefined) throw new GateError("no_route");
  const { require, authorizer } = route;
  if (require !== undefined && !meets(identity, require)) {
    throw new GateError("forbidden", { reason: "forbidden", scope: challengedScopes(require) });
  }
  return authorizer === undefined
    ? mintPermit(request, route, identity)
    : permitIfAllowed(authorizer, request, route, identity);
}

/** Asks another server. @throws or rejects with GateError `forbidden` or `authorization_unavailable`. */
function permitIfAllowed(
  authorizer: Authorizer,
  request: GateRequest,
  route: Route,
  identity: Identity,
): Permit | Promise<Permit> {
  const permitIf = (allowed: boolean): Permit => {
    if (!allowed) throw new GateError("forbidden", { reason: "forbidden" });
    return mintPermit(request, route, identity);
  };
  const allowed = authorizer.allows(request, identity);
  return allowed instanceof Promise ? allowed.then(permitIf) : permitIf(allowed);
}

/** Permits, without an identity, a request that would be refused. Throws unless the route is in monitor mode. */
export function letPass(request: GateRequest, route: Route): Permit {
  if (route.mode !== "monitor") throw new GateError("internal", { reason: "not_monitored" });
  return mintPermit(request, route, undefined);
}
