/** A response that can send 100 Continue. */
interface Continuable {
  readonly headersSent: boolean;
  writeContinue(): void;
}

/**
 * Sends 100 Continue (RFC 9110 §15.2.1), unless the request has already been refused. A client that gets no 100 sends
 * its body after a while (RFC 9110 §10.1.1).
 */
export function sendContinue(response: Continuable): void {
  if (!response.headersSent) response.writeContinue();
}
