import { errorRow, GateError } from "../../core/request/errors.ts";
import { endGrpcCall, grpcTypeOf } from "../../core/request/grpc.ts";
import type { OutgoingResponse } from "../../core/request/http-message.ts";
import { headerValues } from "../../lib/http/header-values.ts";
import type { PermittedRequest } from "../http/dispatch.ts";

const TIMEOUT = /^(\d{1,8})([HMSmun])$/;
const MILLISECONDS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};
/** `GateRequest.bodyLength` of a body without a length. */
const UNKNOWN_LENGTH = -1;
/** The maximum delay of a Node timer. */
const LONGEST_MS = 2 ** 31 - 1;

/** Returns the time limit of a call, in milliseconds; undefined if it has none. */
function timeoutOf(rawHeaders: readonly string[]): number | undefined {
  const [, amount = "", unit = ""] =
    TIMEOUT.exec(headerValues(rawHeaders, "grpc-timeout")[0] ?? "") ?? [];
  const factor = MILLISECONDS[unit];
  return factor === undefined ? undefined : Number(amount) * factor;
}

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
  const ms = timeoutOf(rawHeaders);
  if (ms === undefined) return forwarded;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(
    () => {
      if (response.writableEnded || response.destroyed) return;
      const error = new GateError("deadline_exceeded");
      transfer.abortReason = "deadline_exceeded";
      if (response.headersSent) breakOff(response, error);
      else reject(error);
      transfer.exchange?.cancel();
    },
    Math.min(ms, LONGEST_MS),
  );
  forwarded.finally(() => clearTimeout(timer)).then(resolve, reject);
  return promise;
}

/** Ends a response that has begun but that the backend did not complete. A gRPC client gets the reason in the trailers. */
export function breakOff(response: OutgoingResponse, failure: GateError): void {
  if (!endGrpcCall(response, errorRow(failure.code).status, failure.message)) response.destroy();
}
