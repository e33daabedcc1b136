import type { IncomingHttpHeaders } from "node:http";
import type {
  AnswerHandler,
  BackendRequest,
  ConnectionPool,
  RequestControl,
} from "../http/connection.ts";

/** A request that Sallyport itself sends to a backend. */
export type BackendQuery = Pick<BackendRequest, "method" | "path" | "headers"> & {
  readonly body?: Buffer;
};

export interface ShortAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders;
  /** The beginning of the body. */
  readonly body: Buffer;
}

/**
 * Sends the request over the connections of a pool.
 *
 * @param maxBytes of the body; the rest is not read. 0 for the head alone.
 * @throws the error of the connection, or an AbortError.
 */
export async function sendQuery(
  pool: ConnectionPool,
  query: BackendQuery,
  limit: AbortSignal,
  maxBytes: number,
): Promise<ShortAnswer> {
  limit.throwIfAborted();
  const handler = new Reader(maxBytes);
  limit.addEventListener(
    "abort",
    () => {
      pool.withdraw?.(handler);
      handler.end(new DOMException("too late", "AbortError"));
    },
    { once: true },
  );
  const { body = null } = query;
  pool.dispatch({ ...query, body, acceptsTrailers: true }, handler);
  return handler.answer.promise;
}

/** Sends it over a new connection, which it closes afterwards. */
export async function sendQueryOnce(
  pool: ConnectionPool,
  query: BackendQuery,
  limit: AbortSignal,
  maxBytes: number,
): Promise<ShortAnswer> {
  try {
    return await sendQuery(pool, query, limit, maxBytes);
  } finally {
    void pool.close();
  }
}

/** Reads a response up to a maximum size. */
class Reader implements AnswerHandler {
  readonly #maxBytes: number;
  readonly answer = Promise.withResolvers<ShortAnswer>();
  readonly #parts: Buffer[] = [];
  #bytes = 0;
  #control: RequestControl | undefined;
  #ended: Error | undefined;
  #status = 0;
  #headers: IncomingHttpHeaders = {};

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Ends the request without a response. */
  end(error: Error): void {
    this.#ended = error;
    this.answer.reject(error);
    this.#control?.abort(error);
  }

  onRequestStart(control: RequestControl): void {
    this.#control = control;
    // The connection did not open before the time limit.
    if (this.#ended !== undefined) control.abort(this.#ended);
  }

  onResponseStart(status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    this.#endIfEnough();
  }

  onResponseData(chunk: Buffer): void {
    this.#parts.push(chunk);
    this.#bytes += chunk.length;
    this.#endIfEnough();
  }

  #endIfEnough(): void {
    if (this.#bytes < this.#maxBytes) return;
    this.#settle({});
    this.#control?.abort(new Error("enough"));
  }

  onResponseEnd(trailers: IncomingHttpHeaders = {}): void {
    this.#settle(trailers);
  }

  onResponseError(error: Error): void {
    this.answer.reject(error);
  }

  #settle(trailers: IncomingHttpHeaders): void {
    const body = Buffer.concat(this.#parts).subarray(0, this.#maxBytes);
    this.answer.resolve({ status: this.#status, headers: this.#headers, trailers, body });
  }
}
