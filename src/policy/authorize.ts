import { GateError } from "../core/request/errors.ts";
import type { GateRequest } from "../core/request/gate-request.ts";
import type { Identity } from "../core/request/identity.ts";
import { mintPermit, type Permit, type PermitParts } from "../core/request/permit.ts";
import type { Route } from "../core/route/route.ts";
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
  if (route?.auth === "none") return mintPermit({ request, route, identity: undefined });
  if (identity === undefined && route?.auth === "optional") {
    return mintPermit({ request, route, identity });
  }
  if (identity === undefined) throw new GateError("unauthenticated", { reason: "missing" });
  if (route === undefined) throw new GateError("no_route");
  if (route.require !== undefined && !meets(identity, route.require)) {
    throw new GateError("forbidden", {
      reason: "forbidden",
      scope: challengedScopes(route.require),
    });
  }
  const allowed = route.authorizer?.allows(request, identity) ?? true;
  const parts = { request, route, identity };
  return allowed instanceof Promise
    ? allowed.then((later) => permitIf(later, parts))
    : permitIf(allowed, parts);
}

/** @throws GateError `forbidden`. */
function permitIf(allowed: boolean, parts: PermitParts): Permit {
  if (!allowed) throw new GateError("forbidden", { reason: "forbidden" });
  return mintPermit(parts);
}

/** Permits, without an identity, a request that would be refused. Throws unless the route is in monitor mode. */
export function letPass(request: GateRequest, route: Route): Permit {
  if (route.mode !== "monitor") throw new GateError("internal", { reason: "not_monitored" });
  return mintPermit({ request, route, identity: undefined });
}
