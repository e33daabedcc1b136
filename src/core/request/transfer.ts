import type { Question } from "../../server/request/gate.ts";
import type { OpenWebSocket } from "../../upstream/websocket/open-websocket.ts";

/**
 * The progress of forwarding one request. The pipeline creates it, `upstream/` updates it, and the access line
 * reports it.
 */
export class Transfer {
  upstream: string | undefined;
  target: string | undefined;
  /** Body bytes from the client to the backend. */
  bytesIn = 0;
  /** Body bytes from the backend to the client. */
  bytesOut = 0;
  /**
   * The idle time, without a byte in either direction, after which the request ends, in milliseconds. With it, the
   * body may take any time. Undefined for a request whose body must arrive within `server.timeouts.request`.
   */
  idleMs: number | undefined;
  /**
   * Whether a small response has arrived completely. It is sent at the end of this turn of the event loop at the
   * latest.
   */
  arrived = false;
  /** The time from dispatch to the head of the backend's response, in milliseconds. */
  upstreamHeaderMs: number | undefined;
  /** Why the response was aborted midway; undefined if it was not. Set it before ending a response early. */
  abortReason: string | undefined;
  /** Fields for scripts of other origins; undefined if CORS is off. */
  cors: CorsFields | undefined;
  /** Whether the URL may contain a token, which browsers must not repeat in `Referer`. */
  noReferrer = false;
  /** The address that challenges name (RFC 9728 §5.1); undefined for none. */
  resourceMetadata: string | undefined;
  /** What another proxy asks about the request, which it forwards itself; undefined if it is to be forwarded here. */
  question: Question | undefined;
  /** The WebSocket that the request has opened. */
  webSocket: OpenWebSocket | undefined;
  /** What a backend does for the request; undefined until it is forwarded. */
  exchange: { cancel(): void; readonly attempts: number } | undefined;
  /** The buffers of the request; undefined until it is forwarded. */
  holder: BufferHolder | undefined;
}

/** Fields for a response, names and values alternating. */
export interface CorsFields {
  /** For the response of a backend. */
  readonly backend: readonly string[];
  /** For a response of Sallyport's own: scripts may also read what says why, and when to ask again. */
  readonly own: readonly string[];
}

/** Something that buffers bytes in memory for a client's connection. */
export interface BufferHolder {
  /** The memory in use, in bytes. */
  readonly bufferedBytes: number;
}
