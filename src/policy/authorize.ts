import { GateError } from "../core/errors.ts";
import type { GateRequest } from "../core/gate-request.ts";
import type { Identity } from "../core/identity.ts";
import { mintPermit, type Permit } from "../core/permit.ts";
import type { GroupRequirement, Route } from "../core/route.ts";

/**
 * The one place that lets a request through.
 *
 * @param route the route of the request, or undefined when there is none.
 * @param identity the verified caller; undefined is enough on a public route alone.
 * @throws GateError `unauthenticated`, `no_route` or `forbidden`.
 */
export function authorize(
  request: GateRequest,
  route: Route | undefined,
  identity: Identity | undefined,
): Permit {
  if (route?.auth === "none") return mintPermit({ request, route, identity: undefined });
  if (identity === undefined) throw new GateError("unauthenticated", { reason: "missing" });
  if (route === undefined) throw new GateError("no_route");
  if (route.groups !== undefined && !satisfies(identity.groups, route.groups)) {
    throw new GateError("forbidden", { reason: "forbidden" });
  }
  return mintPermit({ request, route, identity });
}

/** Lets a request through that would be refused, as nobody's: only where the route is watched and not enforced. */
export function letPass(request: GateRequest, route: Route): Permit {
  if (route.mode !== "monitor") throw new GateError("internal", { reason: "not_monitored" });
  return mintPermit({ request, route, identity: undefined });
}

function satisfies(groups: readonly string[], requirement: GroupRequirement): boolean {
  const { any, all } = requirement;
  return (
    (any === undefined || any.some((group) => groups.includes(group))) &&
    (all === undefined || all.every((group) => groups.includes(group)))
  );
}
