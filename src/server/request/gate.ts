import type { IncomingHttpHeaders } from "node:http";
import type { AccessFields } from "../../core/request/outcome.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Identity } from "../../core/request/identity.ts";
import type { IncomingRequest, OutgoingResponse } from "../../core/request/http-message.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { Route, RouteQuery } from "../../core/route/route.ts";
import type { TokenPlaces } from "../../core/request/token-place.ts";
import type { Transfer } from "../../core/request/transfer.ts";
import type { VerifyApiKey } from "../../tokens/api-keys/api-keys.ts";
import type { Certificates } from "../../tokens/certificates/certificates.ts";
import type { TokenVerifier } from "../../tokens/verify/verifier.ts";
import type { Forwarder } from "../../upstream/forward.ts";
import type { ResourceMetadata } from "../endpoints/resource-metadata.ts";
import type { Cors } from "../endpoints/cors.ts";
import type { Decisions } from "../decisions/decisions.ts";
import type { Sessions } from "../browser/sessions.ts";
import type { Intake } from "./intake.ts";

/**
 * All parts that decide about a request, built together from one configuration, in the order in which a request meets them. A
 * request finishes on the gate on which it started, unless a newer gate would refuse it.
 */
export interface Gate {
  /** Keeps the parts open until `release`: a request holds its gate whenever it waits for something. */
  acquire(): void;
  /** Whether some route takes tokens from the query, so that URLs may contain one. */
  readonly tokensInUrls: boolean;
  /** Undefined if scripts of other origins may read nothing. */
  readonly cors: Cors | undefined;
  /** Sallyport's own endpoints by canonical path. */
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  /** @throws GateError `bad_request` if a backend could read the headers as those of a stricter route. */
  findRoute(request: RouteQuery): Route | undefined;
  /** Where there is no route, a token is needed all the same. */
  readonly nowhere: { readonly auth: "required"; readonly tokenFrom: TokenPlaces | undefined };
  readonly tokens: Pick<TokenVerifier, "verify" | "proofs">;
  /** Whether a proof may name a host, in lower case and without port; undefined if any. */
  readonly isOwnHost: ((host: string) => boolean) | undefined;
  /** Undefined if there are none. */
  readonly verifyApiKey: VerifyApiKey | undefined;
  /** Undefined if clients are not asked for certificates. */
  readonly certificates: Pick<Certificates, "check" | "verify"> | undefined;
  /** Whether clients are told why a token was refused. */
  readonly describesRefusals: boolean;
  /** @throws or rejects with GateError `unauthenticated`, `no_route`, `forbidden` or `authorization_unavailable`. */
  authorize(
    request: GateRequest,
    route: Route | undefined,
    identity: Identity | undefined,
  ): Permit | Promise<Permit>;
  /** On a route in monitor mode, permits as anonymous a request that would be refused. Throws for any other route. */
  letPass(request: GateRequest, route: Route): Permit;
  /** Undefined if nothing is forwarded. */
  readonly forwarder: Forwarder | undefined;
  /** What people with browsers get; undefined if everybody gets the envelope. */
  readonly sessions: Sessions | undefined;
  /** Undefined if challenges say nothing of where to get a token. */
  readonly metadata: Pick<ResourceMetadata, "addressFor" | "scopesFor"> | undefined;
  /** Answers other proxies; undefined if none may ask. */
  readonly decisions: Decisions | undefined;
  /** Undefined if access lines have no additional fields. */
  readonly accessFields: AccessFields | undefined;
  release(): void;
}

/** A complete response of Sallyport's own. */
export interface Answer {
  readonly status: number;
  /** The status in the log and the metrics, if the client gets it somewhere other than in the status line. */
  readonly logged?: number;
  /** Names and values, alternating. */
  readonly headers: readonly string[];
  readonly body: string | Buffer;
  readonly trailers?: [string, string][];
  /** Whether to close the connection after this response. */
  readonly close?: boolean;
}

/** What another proxy asks: may a request pass? */
export interface Question {
  /** The headers of the request, names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** Returns the request. @param message asks. @throws GateError if nobody may send it. */
  subject(message: GateRequest): GateRequest;
  /** Returns the answer for a request that may pass. @throws GateError `bad_request` if the client's own identity could stay. */
  yes(permit: Permit): Answer;
  /** Turns the answer that the client would get from us into the answer for the proxy. */
  no(answer: Answer): Answer;
}

/** The arguments of an endpoint. */
export interface EndpointCall {
  readonly request: GateRequest;
  readonly incoming: IncomingRequest;
  readonly response: OutgoingResponse;
  /** The caller; undefined if the endpoint requires no token. */
  readonly identity: Identity | undefined;
  readonly transfer: Transfer;
}

/** An endpoint of Sallyport itself. */
export interface Endpoint {
  /** The label in metrics and logs. */
  readonly name: string;
  readonly methods: readonly string[];
  readonly auth: "required" | "none";
  /** The places of tokens; default: only `Authorization`. */
  readonly tokenFrom?: TokenPlaces | undefined;
  /** Whether it also answers callers with a revoked token. */
  readonly acceptsRevoked?: true;
  /**
   * Throws the `GateError` for a request that `answer` would refuse whatever its body. Left out if `answer` does not
   * read the body.
   */
  checkHead?(request: GateRequest, incoming: IncomingRequest): void;
  /** Returns the response, or throws the `GateError` to respond with. */
  answer(call: EndpointCall): Promise<Answer>;
}

/** Everything that handles requests under one configuration. A reload replaces it as a whole. */
export interface Rules {
  readonly gate: Gate;
  readonly intake: Intake;
  /** The `realm` in challenges. */
  readonly realm: string;
  /** Whether requests and WebSockets end with their token. */
  readonly streams: {
    readonly endWithToken: boolean;
    /** How long they may continue after it has expired, in milliseconds; never after a revocation. */
    readonly grace: number;
  };
}

/** What is in force in one thread. */
export interface RulesInForce {
  readonly current: Rules;
  /** Changes whenever a decision made before may no longer hold: with a reload, and with the keys of an issuer. */
  readonly ruling: number;
  /** Whether every answer closes its connection because the proxy is stopping. */
  readonly draining: boolean;
}

/** What refuses a connection or a request needs of it. */
export interface Challenges {
  readonly current: Pick<Rules, "realm">;
}
