import type { UpstreamErrorReason } from "../../core/request/outcome.ts";

/**
 * The faults of backends and clients that Sallyport finds: the reason that is counted, and words for the log. Without a reason, nobody
 * at the backend is at fault.
 */
const FAULTS = {
  connection_lost: ["reset", "the backend closed the connection"],
  stream_reset: ["reset", "the backend ended the stream"],
  /** It was not processed, so any method may be sent again (RFC 9113 §8.7): the backend closes the connection. */
  unprocessed: ["reset", "the backend has not processed the request"],
  /** Likewise, but the backend refused only this request. */
  refused: ["reset", "the backend has not processed the request"],
  unexpected_bytes: ["invalid_response", "the backend sent data that no request asked for"],
  invalid_status: ["invalid_response", "the backend answered with an invalid status"],
  invalid_answer: ["invalid_response", "the answer of the backend is not valid HTTP"],
  invalid_http2: ["invalid_response", "the backend breaks HTTP/2"],
  /** By ALPN. */
  chose_http2: ["invalid_response", "the backend chose HTTP/2"],
  no_http2: ["invalid_response", "the backend does not speak HTTP/2"],
  connect_timeout: ["connect_timeout", "the backend did not answer in time"],
  response_timeout: ["response_timeout", "the backend did not answer in time"],
  idle_timeout: ["idle_timeout", "the backend did not answer in time"],
  /** No byte of the request was written. */
  unsendable: [undefined, "the request to the backend is not valid HTTP"],
  client_gone: ["aborted", "the client is gone"],
  handshake_aborted: ["aborted", "the client left during the handshake"],
  /** The response was discarded. */
  repeated: ["invalid_response", "the request is sent again"],
} as const satisfies Readonly<
  Record<string, readonly [reason: UpstreamErrorReason | undefined, words: string]>
>;

/** Why a request to a backend ends early. */
export class BackendFault extends Error {
  readonly kind: keyof typeof FAULTS;
  /** Undefined if the request could not be sent. */
  readonly reason: UpstreamErrorReason | undefined;

  constructor(kind: keyof typeof FAULTS, detail?: string) {
    const [reason, words] = FAULTS[kind];
    super(detail === undefined ? words : `${words}: ${detail}`);
    this.name = "BackendFault";
    this.kind = kind;
    this.reason = reason;
  }
}

/** Converts anything that a handler threw to an error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error("a handler failed", { cause: thrown });
}
