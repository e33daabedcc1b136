import type { ServerResponse } from "node:http";

/**
 * Sends 100 Continue (RFC 9110 §15.2.1) if it still can: not after a refusal, and not while an earlier response is
 * being written, since Node (26) would put it into the middle of that. A client without a 100 sends its body after a
 * while (RFC 9110 §10.1.1).
 */
export function sendContinue(response: ServerResponse): void {
  if (response.socket !== null && !response.headersSent) response.writeContinue();
}
