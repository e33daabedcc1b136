import { type GateError, errorRow } from "../../core/request/errors.ts";
import { endGrpcCall } from "../../core/request/grpc.ts";
import type { OutgoingResponse } from "../../core/request/http-message.ts";

/** Ends a response that has begun but that the backend did not complete. A gRPC client gets the reason in the trailers. */
export function breakOff(response: OutgoingResponse, failure: GateError): void {
  if (!endGrpcCall(response, errorRow(failure.code).status, failure.message)) response.destroy();
}
