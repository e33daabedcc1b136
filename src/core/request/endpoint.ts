import type { Answer } from "./answer.ts";
import type { IncomingRequest, OutgoingResponse } from "./http-message.ts";
import type { GateRequest } from "./gate-request.ts";
import type { Identity } from "./identity.ts";
import type { Transfer } from "./transfer.ts";

/** The arguments of an endpoint. */
export interface EndpointCall {
  readonly request: GateRequest;
  readonly incoming: IncomingRequest;
  readonly response: OutgoingResponse;
  /** The caller; undefined if the endpoint requires no token. */
  readonly identity: Identity | undefined;
  readonly transfer: Transfer;
}

/** An endpoint of Sallyport itself. */
export interface Endpoint {
  /** The label in metrics and logs. */
  readonly name: string;
  readonly methods: readonly string[];
  readonly auth: "required" | "none";
  /** Whether it also answers callers with a revoked token. */
  readonly acceptsRevoked?: true;
  /**
   * Throws the `GateError` for a request that `answer` would refuse whatever its body. Left out if `answer` does not
   * read the body.
   */
  checkHead?(request: GateRequest, incoming: IncomingRequest): void;
  /** Returns the response, or throws the `GateError` to respond with. */
  answer(call: EndpointCall): Promise<Answer>;
}
