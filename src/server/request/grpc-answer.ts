import type { Answer } from "../../core/request/answer.ts";
import { type GateError, errorRow } from "../../core/request/errors.ts";
import { grpcFields, grpcStatusOf, grpcTypeOf } from "../../core/request/grpc.ts";
import type { IncomingRequest } from "../../core/request/http-message.ts";

/** About the body that a call of gRPC does not get. */
const OF_BODY = new Set(["content-type", "content-length", "x-content-type-options"]);

/**
 * Turns the answer for an error into what a client of gRPC reads: status 200, no body, and the status of the call among the
 * headers. Answers to others stay as they are.
 */
export function forGrpc(answer: Answer, error: GateError, request: IncomingRequest): Answer {
  const type = grpcTypeOf(request.method, request.headers["content-type"]);
  if (type === undefined) return answer;
  const { status } = errorRow(error.code);
  const headers = ["Content-Type", type, "Content-Length", "0"];
  for (const field of grpcFields(grpcStatusOf(status), error.message)) headers.push(...field);
  for (let i = 0; i + 1 < answer.headers.length; i += 2) {
    const [name = "", value = ""] = [answer.headers[i], answer.headers[i + 1]];
    if (!OF_BODY.has(name.toLowerCase())) headers.push(name, value);
  }
  return { ...answer, status: 200, headers, body: "", logged: status };
}
