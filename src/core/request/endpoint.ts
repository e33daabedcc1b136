import type { IncomingRequest, OutgoingResponse } from "./http-message.ts";
import type { GateRequest } from "./gate-request.ts";
import type { Identity } from "./identity.ts";
import type { TokenPlaces } from "./token-place.ts";
import type { Transfer } from "./transfer.ts";

/** A complete response of Sallyport's own. */
export interface Answer {
  readonly status: number;
  /** The status in the log and the metrics, if the client gets it somewhere other than in the status line. */
  readonly logged?: number;
  /** Names and values, alternating. */
  readonly headers: readonly string[];
  readonly body: string;
  /** Whether to close the connection after this response. */
  readonly close: boolean;
}

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
  /** The places of tokens; default: only `Authorization`. */
  readonly tokenFrom?: TokenPlaces | undefined;
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
