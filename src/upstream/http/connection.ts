import type { IncomingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import type { RequestBody } from "./client-body.ts";

/** A request to a backend. */
export interface BackendRequest {
  readonly method: string;
  readonly path: string;
  /** Names and values, alternating, including `Host`. */
  readonly headers: string[];
  readonly body: Buffer | RequestBody | null;
  /** Whether the client can read trailers. Only HTTP/2 passes this on. */
  readonly acceptsTrailers?: boolean;
  /** The trailers for the backend once the body has ended; names and values, alternating. Only HTTP/2 carries them. */
  readonly trailers?: (() => readonly string[]) | undefined;
}

/** The connections to a target: keep-alive connections of HTTP/1.1, or HTTP/2 sessions. */
export interface ConnectionPool {
  /** Sends a request when a connection is free, and reports its progress to the handler. */
  dispatch(request: BackendRequest, handler: AnswerHandler): void;
  /** Removes a request that waits for a connection because its client has left. Omitted if requests never wait. */
  withdraw?(handler: AnswerHandler): void;
  /** The protocol that the backend chose; undefined if TLS does not negotiate it, or no connection has been open. */
  readonly negotiated?: "http1" | "http2" | undefined;
  /** Closes all connections after the requests on them. */
  close(): Promise<void>;
}

/** The carrier of one request: an HTTP/1.1 connection, or an HTTP/2 stream. */
export interface Connection {
  /** The socket that the answer is read from; undefined if requests share it. */
  readonly socket: Socket | undefined;
  /** Whether written data waits for the backend, as in Node's streams. */
  readonly writableNeedDrain: boolean;
  /** Bytes that wait for the backend or the client, where requests share a connection. */
  readonly bufferedBytes?: number;
}

/** What the handler of a request can do to it. */
export interface RequestControl {
  /** Ends the request; the handler gets the error. */
  abort(reason: Error): void;
  /** Stops reading the answer. */
  pause(): void;
  resume(): void;
}

/**
 * Receives the events of one request, in this order. `onResponseError` may come at any point and is then the last.
 * If a handler throws, the request is aborted. It leaves out what it need not know.
 */
export interface AnswerHandler {
  /** The connection has been chosen. It may not be open yet. */
  onConnection?(connection: Connection): void;
  /** The request is about to be written. @param wasUsed whether the connection has carried requests before. */
  onRequestStart(control: RequestControl, wasUsed: boolean): void;
  /** A part of the body was written. */
  onBodySent?(): void;
  /** All of the request was written. An answer may begin earlier. */
  onRequestSent?(): void;
  /** The first bytes of an answer, interim ones included, have arrived. Called again for further bytes. */
  onResponseStarted?(): void;
  /** @param headers names in lower case. */
  onResponseStart(status: number, headers: IncomingHttpHeaders, statusMessage?: string): void;
  onResponseData(chunk: Buffer): void;
  onResponseEnd(trailers: IncomingHttpHeaders | undefined): void;
  onResponseError(error: Error): void;
}
