import type { GateRequest } from "./gate-request.ts";
import type { Identity } from "./identity.ts";
import type { Route } from "../route/route.ts";

/** Creates a permit for a request that policy allows. Only `policy/authorize` may import it (a lint rule). */
export let mintPermit: (
  request: GateRequest,
  route: Route,
  identity: Identity | undefined,
) => Permit;

/**
 * Proof that a request may be forwarded: this request, on this route, for this caller. The caller may be undefined, as
 * on a public route. Only `mintPermit` creates one.
 */
export class Permit {
  readonly #granted = true;
  readonly request: GateRequest;
  readonly route: Route;
  readonly identity: Identity | undefined;
  static {
    mintPermit = (request, route, identity) => new Permit(request, route, identity);
  }

  private constructor(request: GateRequest, route: Route, identity: Identity | undefined) {
    this.request = request;
    this.route = route;
    this.identity = identity;
  }

  /** Whether a value is a genuine permit. */
  static is(value: unknown): value is Permit {
    return typeof value === "object" && value !== null && #granted in value;
  }
}
