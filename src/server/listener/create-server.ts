import type { Server } from "node:http";
import { createServer } from "../../lib/http/node-http.ts";
import { TrackedResponse } from "../request/tracked-response.ts";
import { createTlsServer } from "../tls/tls-listener.ts";
import { createBoundedRequestClass } from "./bounded-request.ts";
import type { ListenOptions } from "./listen-options.ts";

/**
 * Bytes of a response to buffer for a slow client before the backend is paused. With Node's 64 KiB every part of a
 * large response pauses the flow: a download over TLS took 1.12 times the processor time.
 */
export const HIGH_WATER_MARK = 256 * 1024;

/**
 * Creates the server that reads HTTP/1.1, over TLS if there is a certificate.
 *
 * @param http2 whether TLS clients may choose HTTP/2 now.
 */
export function createHttpServer(options: ListenOptions, http2: () => boolean): Server {
  const { header } = options.timeouts;
  const http = {
    maxHeaderSize: options.limits.headerBytes,
    // The intake refuses a missing one with the error envelope.
    requireHostHeader: false,
    insecureHTTPParser: false,
    noDelay: true,
    optimizeEmptyRequests: true,
    highWaterMark: HIGH_WATER_MARK,
    IncomingMessage: createBoundedRequestClass(options.buffered, options.reading),
    ServerResponse: TrackedResponse,
  };
  if (options.tls === undefined) return createServer(http);
  return createTlsServer({ ...http, handshakeTimeout: header }, options.tls, http2);
}
