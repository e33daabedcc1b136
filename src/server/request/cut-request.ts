import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type ErrorCode, GateError } from "../../core/request/errors.ts";
import type { Permit } from "../../core/request/permit.ts";
import { interrupt, currentResponse } from "../listener/client-error.ts";

/** A permitted request and its connection. */
export interface RequestUnderWay {
  readonly permit: Permit;
  readonly socket: Socket;
}

/**
 * Closes a connection on Sallyport's own initiative. The log line and the metrics of its request get `reason` and the status
 * that the client saw. Otherwise it would look as if the client had left: 499, `aborted`.
 *
 * @param reason a word of the closed set in docs/runbook.md.
 */
export function cut(socket: Duplex, reason: string): void {
  const response = currentResponse(socket);
  response?.blame(reason);
  socket.destroy();
}

/**
 * Ends the request on a connection: with an answer if none has begun, otherwise by closing the connection.
 *
 * @param reason the reason in the log line, instead of the code of the error.
 * @returns whether there was a request.
 */
export function refuseUnderWay(
  socket: Duplex,
  error: ErrorCode | GateError,
  realm: string,
  reason: string = typeof error === "string" ? error : error.code,
): boolean {
  const response = currentResponse(socket);
  // The answer is complete, or about to be.
  if (response === undefined || response.whole || response.transfer?.arrived === true) return false;
  response.blame(reason);
  if (response.headersSent || !socket.writable) socket.destroy();
  else interrupt(typeof error === "string" ? new GateError(error) : error, response, realm);
  return true;
}
