import type { IncomingMessage, ServerResponse } from "node:http";
import type { Permit } from "./permit.ts";
import type { Transfer } from "./transfer.ts";

/** What one upstream has to do at a moment. */
export interface UpstreamLoad {
  /** Requests under way at its targets. */
  readonly inFlight: number;
  /** Requests that wait until one of these is through. */
  readonly waiting: number;
}

/** Carries permitted requests to the backends. It takes nothing but a permit, so a forgotten check does not compile. */
export interface Forwarder {
  /**
   * Streams the request to the backend and the answer to the client, both with back-pressure.
   *
   * Resolves when the answer was handed over whole or the client is gone; when the backend breaks off in mid-answer, the
   * client's connection is destroyed, `transfer.brokeOff` says why, and it resolves.
   * Throws or rejects with a GateError about the backend (502, 503, 504) or the body (413) while nothing has been sent
   * to the client.
   */
  forward(
    permit: Permit,
    request: IncomingMessage,
    response: ServerResponse,
    transfer: Transfer,
  ): Promise<void>;

  /**
   * Carries a WebSocket. Resolves with the status that the client got when both sides are closed: 101 when it was
   * switched, else that of the backend's refusal, which goes out through `response`.
   * @throws GateError about the backend while nothing has been sent to the client.
   */
  upgrade(
    permit: Permit,
    request: IncomingMessage,
    head: Buffer,
    response: ServerResponse,
    transfer: Transfer,
  ): Promise<number>;

  /** How many WebSockets are open. */
  webSockets(): number;

  /** Tells every open WebSocket that the proxy goes away (close code 1001, RFC 6455 §7.4.1). */
  closeWebSockets(): void;
}
