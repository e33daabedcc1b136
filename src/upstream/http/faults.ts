/** The faults of backends and clients that Sallyport finds: a code for `failureReason`, and words for the log. */
const FAULTS = {
  connection_lost: ["ECONNRESET", "the backend closed the connection"],
  stream_reset: ["ECONNRESET", "the backend ended the stream"],
  /** It was not processed, so any method may be sent again (RFC 9113 §8.7): the backend closes the connection. */
  unprocessed: ["ECONNRESET", "the backend has not processed the request"],
  /** Likewise, but the backend refused only this request. */
  refused: ["ECONNRESET", "the backend has not processed the request"],
  unexpected_bytes: ["HPE_UNEXPECTED_BYTES", "the backend sent data that no request asked for"],
  invalid_status: ["HPE_INVALID_STATUS", "the backend answered with an invalid status"],
  invalid_answer: [undefined, "the answer of the backend is not valid HTTP"],
  invalid_http2: ["ERR_HTTP2_ERROR", "the backend breaks HTTP/2"],
  /** By ALPN. */
  chose_http2: ["ERR_HTTP2_ERROR", "the backend chose HTTP/2"],
  no_http2: ["ERR_HTTP2_ERROR", "the backend does not speak HTTP/2"],
  connect_timeout: ["UND_ERR_CONNECT_TIMEOUT", "the backend did not answer in time"],
  response_timeout: ["UND_ERR_HEADERS_TIMEOUT", "the backend did not answer in time"],
  idle_timeout: ["UND_ERR_BODY_TIMEOUT", "the backend did not answer in time"],
  /** No byte of the request was written. */
  unsendable: ["UND_ERR_INVALID_ARG", "the request to the backend is not valid HTTP"],
  client_gone: ["UND_ERR_ABORTED", "the client is gone"],
  handshake_aborted: ["UND_ERR_ABORTED", "the client left during the handshake"],
  /** The response was discarded. */
  repeated: [undefined, "the request is sent again"],
} as const satisfies Readonly<Record<string, readonly [code: string | undefined, words: string]>>;

/** Why a request to a backend ends early. */
export class BackendFault extends Error {
  readonly kind: keyof typeof FAULTS;
  readonly code: string | undefined;

  constructor(kind: keyof typeof FAULTS, detail?: string) {
    const [code, words] = FAULTS[kind];
    super(detail === undefined ? words : `${words}: ${detail}`);
    this.name = "BackendFault";
    this.kind = kind;
    this.code = code;
  }
}

/** Converts anything that a handler threw to an error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error("a handler failed", { cause: thrown });
}
