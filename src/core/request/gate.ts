import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { AccessFields, AuthReason, AuthResult } from "./outcome.ts";
import type { ConcurrencyVerdict, Cors, RateVerdict, Route, RouteQuery } from "../route/route.ts";
import type { GateRequest } from "./gate-request.ts";
import type { Identity } from "./identity.ts";
import type { Permit } from "./permit.ts";
import type {
  TokenRefusal,
  TokenVerifier,
  VerificationNotes,
  VerificationTrace,
} from "./token-verifier.ts";
import type { GateError } from "./errors.ts";
import type { IncomingRequest, OutgoingResponse } from "./http-message.ts";
import type { TokenPlaces } from "./token-place.ts";
import type { OpenStream, Transfer } from "./transfer.ts";

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

/** The gate that decides, and its input besides the request. */
export interface DecisionContext {
  readonly gate: Gate;
  /** Undefined if the request does not ask to switch protocols. */
  readonly upgrade: Pick<UpgradeRequest, "request"> | undefined;
  /** Whether the request does not count against the limits of its route. */
  readonly dryRun?: true;
  /** The caller that an earlier decision has accepted: their token may have expired since. */
  readonly accepted?: Identity | undefined;
  /** The decision that this one replaces, because something changed while it was made. */
  readonly decision?: Decision | undefined;
  /** Records how the token is verified. */
  readonly trace?: VerificationTrace | undefined;
}

/** The decision about a request, with the facts behind it. */
export interface Decision extends Readonly<VerificationNotes> {
  readonly request: GateRequest;
  /** The endpoint at the request's path, even if it refuses the request. */
  readonly endpoint: Endpoint | undefined;
  /** Whether a route was looked up; false for Sallyport's own endpoints. */
  readonly routed: boolean;
  readonly route: Route | undefined;
  /** The verified caller, even if the request is refused or passes as anonymous. */
  readonly identity: Identity | undefined;
  /** Why there is no verified caller, even on a route in monitor mode. */
  readonly tokenRefusal: TokenRefusal | undefined;
  /** The verdict of the rate limit; undefined if nothing was counted. */
  readonly rate: RateVerdict | undefined;
  /**
   * The verdict of the concurrency limit; undefined if nothing was counted. The caller of `decide` must
   * release it.
   */
  readonly inFlight: ConcurrencyVerdict | undefined;
  /** The result and reason for the metrics; undefined if no decision about the caller was made. */
  readonly auth: AuthResult | undefined;
  readonly reason: AuthReason | undefined;
  /** Forward the request, answer it with an endpoint, or refuse it. */
  readonly action: Permit | Endpoint | GateError;
}

/** A complete response of Sallyport's own. */
export interface Answer {
  readonly status: number;
  /** The status in the log and the metrics, if the client gets it somewhere other than in the status line. */
  readonly logged?: number;
  /** Names and values, alternating. */
  readonly headers: readonly string[];
  readonly body: string;
  /** Whether to close the connection after this response. */
  readonly close: boolean;
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

/** The current load of an upstream. */
export interface UpstreamLoad {
  /** Requests in flight at its targets. */
  readonly inFlight: number;
  /** Requests in its queue. */
  readonly waiting: number;
  /** Targets that are currently not used. */
  readonly leftOut: number;
  /** All of its targets. */
  readonly targets: number;
}

/** The state of one target. */
export interface TargetState {
  readonly upstream: string;
  readonly target: string;
  /** As configured. */
  readonly protocol: string;
  /** The protocol that TLS negotiated, if it is negotiated; undefined before the first connection. */
  readonly negotiated?: string | undefined;
  readonly state: "available" | "ejected" | "unhealthy";
  readonly weight: number;
  /** Requests in flight. */
  readonly inFlight: number;
  /** Consecutive failures. */
  readonly failures: number;
}

/** An HTTP/2 stream over which a client wants to open a WebSocket (RFC 8441). */
export interface TunnelStream {
  /** The bytes of both directions. */
  readonly duplex: Duplex;
  /** Sends the head that opens the tunnel, and returns its status. @param fields names and values, alternating. */
  open(fields: string[]): number;
  /** Resets the stream. */
  abort(): void;
}

/** A request to switch protocols. Its response is used if the switch is refused. */
export interface UpgradeRequest {
  readonly request: IncomingRequest;
  readonly response: OutgoingResponse & { sendDate?: boolean; detachSocket?(socket: Socket): void };
  /** Undefined over HTTP/1.1, where the connection itself becomes the WebSocket. */
  readonly stream: TunnelStream | undefined;
  /** Data that arrived with the request. */
  readonly head: Buffer;
}

/** Forwards requests to the backends. It requires a permit, so a forgotten check does not compile. */
export interface Forwarder {
  /**
   * Streams the request to the backend and the response to the client, both with back-pressure.
   *
   * Resolves when the response is complete or the client has disconnected. If the backend aborts the response midway,
   * destroys the client's connection, sets `transfer.abortReason` and resolves. Throws or rejects with a GateError
   * about the backend (502, 503, 504) or the body (413) if nothing has been sent to the client yet.
   */
  forward(
    permit: Permit,
    request: IncomingRequest,
    response: OutgoingResponse,
    transfer: Transfer,
  ): Promise<void>;

  /**
   * Tunnels a WebSocket. Resolves when both sides are closed, with the status sent to the client: 101, 200 over
   * HTTP/2, or the status of the backend's refusal, which goes out through `response`.
   *
   * @throws GateError about the backend if nothing has been sent to the client yet.
   */
  upgrade(permit: Permit, upgrade: UpgradeRequest, transfer: Transfer): Promise<number>;

  /** The number of open WebSockets. */
  webSockets(): number;

  /** The open WebSockets. */
  openWebSockets(): Iterable<OpenStream>;

  /** Closes every WebSocket with status 1001, "going away" (RFC 6455 §7.4.1). */
  closeWebSockets(): void;
}

/** Tells the backend who is calling, in a form that the backend can verify. */
export interface AssertionSource {
  /** The name of the header field for the assertion. */
  readonly header: string;
  /**
   * Returns a short-lived signed JWT about a caller. Returns the same one while most of its lifetime remains.
   *
   * @throws GateError `keys_unusable` if no key can sign.
   */
  for(identity: Identity): string;
}
