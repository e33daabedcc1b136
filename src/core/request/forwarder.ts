import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { IncomingRequest, OutgoingResponse } from "./http-message.ts";
import type { Permit } from "./permit.ts";
import type { OpenStream, Transfer } from "./transfer.ts";

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
  readonly response: OutgoingResponse & { detachSocket?(socket: Socket): void };
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
