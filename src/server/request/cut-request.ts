import type { Duplex } from "node:stream";
import { type ErrorCode, errorRow, GateError } from "../../core/request/errors.ts";
import { endGrpcCall } from "../../core/request/grpc.ts";
import type { TrackedOutgoing } from "../../core/request/http-message.ts";
import type { Permit } from "../../core/request/permit.ts";
import { interrupt } from "../listener/client-error.ts";
import { responsesOn } from "./tracked-response.ts";

/** A permitted request and its response. */
export interface RequestUnderWay {
  readonly permit: Permit;
  readonly response: TrackedOutgoing;
}

/**
 * Closes a connection on Sallyport's own initiative. The log lines and the metrics of its requests get `reason` and the status
 * that the client saw. Otherwise it would look as if the client had left: 499, `aborted`.
 *
 * @param reason a word of the closed set in docs/runbook.md.
 */
export function cut(socket: Duplex, reason: string): void {
  for (const response of responsesOn(socket)) response.blame(reason);
  socket.destroy();
}

/**
 * Ends a request: first what the backend does for it, then the request itself, with an answer if none has begun, otherwise by
 * closing its connection or resetting its stream. Nothing of this waits for the client.
 *
 * @param reason the reason in the log line, instead of the code of the error.
 * @returns whether it was still under way.
 */
export function refuseUnderWay(
  response: TrackedOutgoing,
  error: ErrorCode | GateError,
  realm: string,
  reason: string = typeof error === "string" ? error : error.code,
): boolean {
  // The answer is complete, or about to be.
  if (!response.isCurrent || response.whole || response.transfer?.arrived === true) return false;
  response.blame(reason);
  response.transfer?.exchange?.cancel();
  const refusal = typeof error === "string" ? new GateError(error) : error;
  if (
    response.headersSent &&
    endGrpcCall(response, errorRow(refusal.code).status, refusal.message)
  ) {
    return true;
  }
  if (response.headersSent || !response.req.socket.writable) response.abort();
  else interrupt(refusal, response, realm);
  return true;
}
