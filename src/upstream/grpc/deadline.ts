import { errorRow, GateError } from "../../core/request/errors.ts";
import { endGrpcCall, grpcTimeout, grpcTypeOf } from "../../core/request/grpc.ts";
import type { OutgoingResponse } from "../../core/request/http-message.ts";
import { headerValues } from "../../lib/http/header-values.ts";
import type { PermittedRequest } from "../http/dispatch.ts";

/** `GateRequest.bodyLength` of a body without a length. */
const UNKNOWN_LENGTH = -1;
/**
 * Applies the gRPC time limits to a call. The call ends at its deadline (`grpc-timeout`), even while it waits for a
 * connection; its stream to the backend is cancelled after the response to the client has been sent. The client chose
 * the deadline, so this is no failure of the upstream. A client stream has no limit of its own.
 * @returns a promise that resolves and rejects like that of `Forwarder.forward`.
 */
export function withinDeadline(
  forwarded: Promise<void>,
  { permit, upstream, request, response, transfer }: PermittedRequest,
): Promise<void> {
  const { rawHeaders, bodyLength } = permit.request;
  const [type] = headerValues(rawHeaders, "content-type");
  if (grpcTypeOf(request, type) === undefined) return forwarded;
  if (bodyLength === UNKNOWN_LENGTH) {
    transfer.idleMs = permit.route.timeouts?.idle ?? upstream.options.timeouts.idle;
  }
  const ms = grpcTimeout(rawHeaders);
  if (ms === undefined) return forwarded;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(() => {
    if (response.writableEnded || response.destroyed) return;
    const error = new GateError("deadline_exceeded");
    transfer.abortReason = "deadline_exceeded";
    if (response.headersSent) breakOff(response, error);
    else reject(error);
    transfer.exchange?.cancel();
  }, ms);
  forwarded.finally(() => clearTimeout(timer)).then(resolve, reject);
  return promise;
}

/** Ends a response that has begun but that the backend did not complete. A gRPC client gets the reason in the trailers. */
export function breakOff(response: OutgoingResponse, failure: GateError): void {
  if (!endGrpcCall(response, errorRow(failure.code).status, failure.message)) response.destroy();
}
