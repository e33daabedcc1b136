import type { IncomingMessage, ServerResponse } from "node:http";
import type { Answer } from "./answer.ts";
import type { GateRequest } from "./gate-request.ts";
import type { Identity } from "./identity.ts";
import type { Transfer } from "./transfer.ts";

/** What an endpoint of our own is given. */
export interface EndpointCall {
  readonly request: GateRequest;
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  /** The caller; undefined where the endpoint wants no token. */
  readonly identity: Identity | undefined;
  readonly transfer: Transfer;
}

/** A path that Sallyport answers itself. */
export interface Endpoint {
  /** The label in metrics and logs. */
  readonly name: string;
  readonly methods: readonly string[];
  readonly auth: "required" | "none";
  /** Gives the answer, or throws the `GateError` that becomes one. */
  answer(call: EndpointCall): Promise<Answer>;
}
