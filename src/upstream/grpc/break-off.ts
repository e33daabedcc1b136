import { type GateError, errorRow } from "../../core/request/errors.ts";
import { endGrpcCall } from "../../core/request/grpc.ts";
import type { OutgoingResponse } from "../../core/request/http-message.ts";

/** Ends an answer that has begun and that the backend did not complete: a call of gRPC learns why. */
export function breakOff(response: OutgoingResponse, failure: GateError): void {
  if (!endGrpcCall(response, errorRow(failure.code).status, failure.message)) response.destroy();
}
