import {
  mintGateRequest,
  type ClientConnection,
  type GateRequest,
  type GateRequestParts,
} from "../../src/core/request/gate-request.ts";
import {
  mintIdentity,
  type Identity,
  type IdentityClaims,
} from "../../src/core/request/identity.ts";
import { mintPermit, type Permit } from "../../src/core/request/permit.ts";
import { clientNetwork } from "../../src/lib/http/networks.ts";
import type { Route } from "../../src/core/route/route.ts";

/** The three proofs and a route, for tests of code that needs them. The defaults are harmless. */

/** The parts of a request, and those of its connection. */
type RequestParts = Partial<GateRequestParts & ClientConnection>;

export function requestWith(parts: RequestParts = {}): GateRequest {
  const {
    peer = "192.0.2.1",
    peerTrusted = false,
    secure = true,
    clientCertificate,
    ...rest
  } = parts;
  return mintGateRequest({
    id: 7,
    requestId: "request-7",
    method: "GET",
    path: "/orders",
    matchPath: "/orders",
    spelling: "strict",
    query: "",
    authority: "api.example.com",
    host: "api.example.com",
    authorization: undefined,
    authorizations: 0,
    rawHeaders: [],
    bodyLength: 0,
    connection: { peer, peerTrusted, secure, clientCertificate },
    client: "192.0.2.1",
    network: clientNetwork(parts.client ?? "192.0.2.1"),
    expectsContinue: false,
    ...rest,
  });
}

export function identityWith(claims: Partial<IdentityClaims> = {}): Identity {
  return mintIdentity({
    subject: "alice",
    groups: ["sales"],
    issuer: "sallyport",
    expiresAt: 1_800_000_000,
    acceptedUntil: 1_800_000_000_000,
    ...claims,
  });
}

export function routeWith(parts: Partial<Route> = {}): Route {
  return {
    name: "everything",
    path: { prefix: "/" },
    auth: "required",
    upstream: "app",
    forwardAuthorization: "strip",
    bodyBytes: Infinity,
    ...parts,
  };
}

/** Creates a permit for alice on an ordinary route. */
export function permitFor(
  request: RequestParts = {},
  route: Partial<Route> = {},
  identity: Identity | undefined = identityWith(),
): Permit {
  return mintPermit(requestWith(request), routeWith(route), identity);
}
