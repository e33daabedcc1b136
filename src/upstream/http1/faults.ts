/** Converts anything that a handler threw to an error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error("a handler failed", { cause: thrown });
}

/** The backend has closed the connection, or we have. */
export class ConnectionLost extends Error {
  readonly code = "ECONNRESET";

  constructor() {
    super("the backend closed the connection");
    this.name = "ConnectionLost";
  }
}

/** The backend sent data that belongs to no request. */
export class UnexpectedBytes extends Error {
  readonly code = "HPE_UNEXPECTED_BYTES";

  constructor() {
    super("the backend sent data that no request asked for");
    this.name = "UnexpectedBytes";
  }
}

/** The backend's status is invalid, or not a response to such a request. */
export class UnexpectedStatus extends Error {
  readonly code = "HPE_INVALID_STATUS";

  constructor() {
    super("the backend answered with an invalid status");
    this.name = "UnexpectedStatus";
  }
}

/** The backend chose HTTP/2 by ALPN on a connection for HTTP/1.1. */
export class ChoseHttp2 extends Error {
  readonly code = "ERR_HTTP2_ERROR";

  constructor() {
    super("the backend chose HTTP/2");
    this.name = "ChoseHttp2";
  }
}
