/** The backend reports that it has not processed a request (RFC 9113 §8.7), so any method may be sent again. */
export class Unprocessed extends Error {
  readonly code = "ECONNRESET";
  /** Whether the backend refused this request. Otherwise it closes the connection. */
  readonly refused: boolean;

  constructor(refused: boolean) {
    super("the backend has not processed the request");
    this.name = "Unprocessed";
    this.refused = refused;
  }
}

/** The backend ended a stream or its connection before its answer was complete. */
export class StreamReset extends Error {
  readonly code = "ECONNRESET";

  constructor() {
    super("the backend ended the stream");
    this.name = "StreamReset";
  }
}

/** The backend violates HTTP/2. */
export class InvalidHttp2 extends Error {
  readonly code = "ERR_HTTP2_ERROR";

  constructor(what: string) {
    super(`the backend breaks HTTP/2: ${what}`);
    this.name = "InvalidHttp2";
  }
}

/** The backend chose another protocol by ALPN. */
export class NoHttp2 extends Error {
  readonly code = "ERR_HTTP2_ERROR";

  constructor() {
    super("the backend does not speak HTTP/2");
    this.name = "NoHttp2";
  }
}
