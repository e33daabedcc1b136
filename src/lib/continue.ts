import type { ServerResponse } from "node:http";

/**
 * Tells a client to send its body (RFC 9110 §15.2.1), as long as it can be told: not behind a request that was refused in
 * the meantime, and not while an earlier answer is still being written, in the middle of which Node (26) would put it. A
 * client that is not told sends its body after a while (RFC 9110 §10.1.1).
 */
export function tellToContinue(response: ServerResponse): void {
  if (response.socket !== null && !response.headersSent) response.writeContinue();
}
