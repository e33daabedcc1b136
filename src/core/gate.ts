import type { Endpoint } from "./endpoint.ts";
import type { Forwarder } from "./forwarder.ts";
import type { GateRequest } from "./gate-request.ts";
import type { Identity } from "./identity.ts";
import type { Permit } from "./permit.ts";
import type { Route } from "./route.ts";
import type { TokenVerifier } from "./token-verifier.ts";

/** Everything that decides about a request, built whole from one configuration. A request ends on the gate it began with. */
export interface Gate {
  /** Our own endpoints by canonical path. */
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  readonly tokens: TokenVerifier;
  findRoute(request: GateRequest): Route | undefined;
  /** @throws GateError `unauthenticated`, `no_route` or `forbidden`. */
  authorize(request: GateRequest, route: Route | undefined, identity: Identity | undefined): Permit;
  /** Lets a request that would be refused through as nobody's, on a route that is only watched. Throws for any other. */
  letPass(request: GateRequest, route: Route): Permit;
  readonly forwarder: Forwarder;
}
