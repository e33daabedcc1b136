import type { IncomingMessage } from "node:http";
import { GateError } from "../core/errors.ts";
import type { GateRequest } from "../core/gate-request.ts";

/**
 * RFC 6455 §4.1: a GET without a body that asks for `websocket` and nothing else.
 *
 * @throws GateError `upgrade_unsupported` for any other upgrade.
 */
export function refuseOtherUpgrades(request: GateRequest, incoming: IncomingMessage): void {
  const wanted = incoming.headers.upgrade?.toLowerCase();
  if (wanted !== "websocket" || request.method !== "GET" || request.bodyLength !== 0) {
    throw new GateError("upgrade_unsupported");
  }
}
