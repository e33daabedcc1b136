import type { Socket } from "node:net";
import type { CorsFields } from "../route/route.ts";
import type { BufferHolder } from "../buffered-bytes.ts";
import type { StreamEnd } from "./outcome.ts";
import type { Permit } from "./permit.ts";

/** Shares the time of a thread's event loop fairly among clients, for reading from them and for writing to them. */
export interface ClientReading {
  /**
   * Charges a client for one unit: a request, a part of a request or response body, or WebSocket frames.
   *
   * @param connection the client's connection.
   * @param backend the backend's connection, if the unit was read from it. It counts as the client's until `release`.
   */
  charge(connection: Socket, backend?: Socket): void;
  /** Charges a client for the cost of a login beyond that of another request. */
  chargeLogin(connection: Socket): void;
  /**
   * A client got the complete response to a request with a valid token. It has priority over unknown clients for some
   * minutes.
   */
  served(connection: Socket): void;
  /** Detaches the backend's connection from the client. */
  release(backend: Socket): void;
}

/** For exchanges without a client. */
export const UNMETERED: ClientReading = {
  charge: () => undefined,
  chargeLogin: () => undefined,
  served: () => undefined,
  release: () => undefined,
};

/** An open WebSocket. */
export interface OpenStream {
  /** The permit under which it is open. */
  readonly permit: Permit;
  /** Replaces the permit after a reload. */
  renew(permit: Permit): void;
  /** Closes the WebSocket, unless it is already closing. Returns whether it did. */
  end(reason: StreamEnd): boolean;
}

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
  /** The WebSocket that the request has opened. */
  webSocket: OpenStream | undefined;
  /** What a backend does for the request; undefined until it is forwarded. */
  exchange: { cancel(): void } | undefined;
  /** The buffers of the request; undefined until it is forwarded. */
  holder: BufferHolder | undefined;
}
