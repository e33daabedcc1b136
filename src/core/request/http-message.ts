import type { IncomingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import type { Http2Response } from "../../server/http2/http2-response.ts";
import type { Permit } from "./permit.ts";
import type { Transfer } from "./transfer.ts";

/**
 * A request as the listener has read it. Node's `IncomingMessage` implements it; so does our wrapper of HTTP/2
 * streams.
 */
export interface IncomingRequest {
  /** `1.0`, `1.1` or `2.0`. */
  readonly httpVersion: string;
  readonly method?: string | undefined;
  /** The request target as sent. */
  readonly url?: string | undefined;
  /** Names in lower case. */
  readonly headers: IncomingHttpHeaders;
  readonly headersDistinct: NodeJS.Dict<string[]>;
  /** Names and values as received, alternating, without pseudo-header fields. */
  readonly rawHeaders: string[];
  /** Like `rawHeaders`; complete when `end` is emitted. */
  readonly rawTrailers: string[];
  /** The client's connection, which other requests may share. */
  readonly socket: Socket;
  /** Whether a body follows, if the HTTP version needs no header field to indicate it. */
  readonly hasBody?: boolean;
  /** Whether the whole request has arrived, including trailers. */
  readonly complete: boolean;
  readonly readableEnded: boolean;
  /** Bytes of the body that nobody has read yet. */
  readonly readableLength: number;
  readonly destroyed: boolean;
  on(event: "data", listener: (chunk: Buffer) => void): this;
  on(event: "end" | "close" | "error", listener: () => void): this;
  once(event: "end" | "close" | "error", listener: () => void): this;
  off(event: "data", listener: (chunk: Buffer) => void): this;
  off(event: "end" | "close" | "error", listener: () => void): this;
  pause(): this;
  resume(): this;
  /** Ends only this request, if its connection is shared with others. */
  abandon?(): void;
}

/** The response to an `IncomingRequest`. Node's `ServerResponse` implements it. */
export interface OutgoingResponse {
  readonly req: IncomingRequest;
  /** Has no effect in HTTP/2, where GOAWAY ends a connection. */
  shouldKeepAlive: boolean;
  statusCode: number;
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  readonly writableEnded: boolean;
  readonly writableFinished: boolean;
  /** Bytes that the client has not taken yet. */
  readonly writableLength: number;
  readonly writableNeedDrain: boolean;
  setHeader(name: string, value: string): unknown;
  /** @param fields names and values, alternating. */
  writeHead(status: number, fields: string[]): unknown;
  writeHead(status: number, reason: string, fields: string[]): unknown;
  flushHeaders(): void;
  writeContinue(): void;
  /** Sends an interim response, if this version of Node supports it. */
  writeInformation?(status: number, fields: string[]): void;
  write(chunk: Buffer, taken?: () => void): boolean;
  addTrailers(fields: [string, string][]): void;
  end(body?: string | Buffer, encoding?: BufferEncoding): unknown;
  destroy(): unknown;
  /**
   * `close`: the response was sent completely, or the client has disconnected. `drain`: the client has taken
   * everything written.
   */
  on(event: "close" | "drain", listener: () => void): this;
  once(event: "close" | "drain", listener: () => void): this;
  off(event: "close" | "drain", listener: () => void): this;
}

/** A response with the state of its request that the listener and the pipeline share. */
export interface TrackedOutgoing extends OutgoingResponse {
  /** The `id` in the envelope and the log line; 0 until the request begins. */
  id: number;
  /** Whether a response of Sallyport's own has been written completely. */
  whole: boolean;
  /** The reason why a parser or a limit ended the request early. */
  interruption: string | undefined;
  /** The progress of the request; undefined until it begins. */
  transfer: Transfer | undefined;
  /** The permit of a forwarded request; undefined until there is one, and for Sallyport's own endpoints. */
  permit: Permit | undefined;
  /** Whether this is the response that the connection is sending now, and it is not complete. */
  readonly isCurrent: boolean;
  /** Records why the request is about to be ended early. The first reason counts. */
  blame(reason: string): void;
  /** Ends the request without a response: closes its connection, or resets its stream. */
  abort(): void;
  /** Over HTTP/2: has the client use another connection from now on. */
  announceClose?(): void;
}

/** How long a client may take to read the end of a response that Sallyport ended early, in milliseconds. */
const READS_WITHIN_MS = 1_000;

/** Destroys a response that has ended, unless the client reads it soon. An HTTP/2 client with a window of 0 never does. */
export function destroyUnlessRead(response: OutgoingResponse): void {
  const timer = setTimeout(() => response.destroy(), READS_WITHIN_MS).unref();
  response.once("close", () => clearTimeout(timer));
}

/** An HTTP/2 stream over which a client wants to open a WebSocket (RFC 8441). */
export type TunnelStream = ReturnType<Http2Response["tunnel"]>;

/** A request to switch protocols. Its response is used if the switch is refused. */
export interface UpgradeRequest {
  readonly request: IncomingRequest;
  readonly response: OutgoingResponse & { sendDate?: boolean; detachSocket?(socket: Socket): void };
  /** Undefined over HTTP/1.1, where the connection itself becomes the WebSocket. */
  readonly stream: TunnelStream | undefined;
  /** Data that arrived with the request. */
  readonly head: Buffer;
}
