import type { AccessFields } from "./outcome.ts";
import type { Cors } from "../route/cors.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Forwarder } from "./forwarder.ts";
import type { GateRequest } from "./gate-request.ts";
import type { Identity } from "./identity.ts";
import type { Permit } from "./permit.ts";
import type { Route, RouteQuery } from "../route/route.ts";
import type { TokenVerifier } from "./token-verifier.ts";

/**
 * All parts that decide about a request, built together from one configuration. A request finishes on the gate on
 * which it started, unless a newer gate would refuse it.
 */
export interface Gate {
  /** Sallyport's own endpoints by canonical path. */
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  readonly tokens: TokenVerifier;
  /** Whether clients are told why a token was refused. */
  readonly describesRefusals: boolean;
  /** Whether some route takes tokens from the query, so that URLs may contain one. */
  readonly tokensInUrls: boolean;
  /** @throws GateError `bad_request` if a backend could read the headers as those of a stricter route. */
  findRoute(request: RouteQuery): Route | undefined;
  /** @throws or rejects with GateError `unauthenticated`, `no_route`, `forbidden` or `authorization_unavailable`. */
  authorize(
    request: GateRequest,
    route: Route | undefined,
    identity: Identity | undefined,
  ): Permit | Promise<Permit>;
  /** On a route in monitor mode, permits as anonymous a request that would be refused. Throws for any other route. */
  letPass(request: GateRequest, route: Route): Permit;
  readonly forwarder: Forwarder;
  /** Undefined if scripts of other origins may read nothing. */
  readonly cors: Cors | undefined;
  /** Undefined if access lines have no additional fields. */
  readonly accessFields: AccessFields | undefined;
  /** Keeps the parts open until `release`: a request holds its gate whenever it waits for something. */
  acquire(): void;
  release(): void;
}
