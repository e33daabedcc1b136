import type { AccessFields } from "./access-fields.ts";
import type { Cors } from "../route/cors.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Forwarder } from "./forwarder.ts";
import type { GateRequest } from "./gate-request.ts";
import type { Identity } from "./identity.ts";
import type { Permit } from "./permit.ts";
import type { Route, RouteQuery } from "../route/route.ts";
import type { TokenVerifier } from "./token-verifier.ts";

/**
 * Everything that decides about a request, built as a whole from one configuration. A request finishes on the gate on
 * which it started, unless a newer gate would refuse it.
 */
export interface Gate {
  /** Sallyport's own endpoints by canonical path. */
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  readonly tokens: TokenVerifier;
  /** Whether clients are told why a token was refused. */
  readonly describesRefusals: boolean;
  findRoute(request: RouteQuery): Route | undefined;
  /** @throws GateError `unauthenticated`, `no_route`, `forbidden` or `authorization_unavailable`, at once or by the promise. */
  authorize(
    request: GateRequest,
    route: Route | undefined,
    identity: Identity | undefined,
  ): Permit | Promise<Permit>;
  /** Permits, as anonymous, a request that would be refused, on a route in monitor mode. Throws for any other route. */
  letPass(request: GateRequest, route: Route): Permit;
  readonly forwarder: Forwarder;
  /** Undefined if scripts of other origins may read nothing. */
  readonly cors: Cors | undefined;
  /** Undefined if access lines have no fields but their own. */
  readonly accessFields: AccessFields | undefined;
  /** Keeps its parts open until `release`: a request holds its gate while it waits for anything. */
  acquire(): void;
  release(): void;
}
