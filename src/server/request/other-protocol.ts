import { GateError } from "../../core/request/errors.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { IncomingRequest } from "../../core/request/http-message.ts";

/** Returns the refusal of a request to switch to any protocol except WebSocket. */
export function otherProtocol(
  request: GateRequest,
  incoming: IncomingRequest,
): GateError | undefined {
  return opensWebSocket(request, incoming) ? undefined : new GateError("upgrade_unsupported");
}

/**
 * Whether a request opens a WebSocket (RFC 6455 §4.1): a GET without a body that asks for `websocket` alone, with exactly
 * one key. Of two keys, the backend could answer one while its answer is checked against the other.
 */
function opensWebSocket(request: GateRequest, incoming: IncomingRequest): boolean {
  const wanted = incoming.headers.upgrade?.toLowerCase();
  const keys = incoming.headersDistinct["sec-websocket-key"];
  const fits = request.method === "GET" && request.bodyLength === 0 && keys?.length === 1;
  // HTTP/1.0 knows no upgrades (RFC 9110 §7.8).
  return wanted === "websocket" && fits && incoming.httpVersion !== "1.0";
}
