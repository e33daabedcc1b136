/** What a handler threw, as an error. */
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

/** The backend sends what nobody asked for. */
export class UnexpectedBytes extends Error {
  readonly code = "HPE_UNEXPECTED_BYTES";

  constructor() {
    super("the backend sends what no request asked for");
    this.name = "UnexpectedBytes";
  }
}

/** A status that answers no request, or none of ours. */
export class UnexpectedStatus extends Error {
  readonly code = "HPE_INVALID_STATUS";

  constructor() {
    super("the backend answers with a status that is none");
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
