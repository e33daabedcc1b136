import type { IncomingMessage } from "node:http";
import { GateError } from "../core/errors.ts";
import type { GateRequest } from "../core/gate-request.ts";

/**
 * RFC 6455 §4.1: a GET without a body that asks for `websocket` and nothing else, with one key: of two, the backend may
 * answer to one and its answer be held against the other.
 *
 * @throws GateError `upgrade_unsupported` for any other upgrade.
 */
export function refuseOtherUpgrades(request: GateRequest, incoming: IncomingMessage): void {
  const wanted = incoming.headers.upgrade?.toLowerCase();
  const keys = incoming.headersDistinct["sec-websocket-key"];
  const fits = request.method === "GET" && request.bodyLength === 0 && keys?.length === 1;
  // HTTP/1.0 knows no upgrades (RFC 9110 §7.8).
  if (wanted !== "websocket" || !fits || incoming.httpVersion !== "1.1") {
    throw new GateError("upgrade_unsupported");
  }
}
