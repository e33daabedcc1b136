import type { IncomingMessage as Message, Server } from "node:http";
import { createServer, IncomingMessage } from "../../lib/http/node-http.ts";
import { TrackedResponse } from "../request/tracked-response.ts";
import { createTlsServer } from "../tls/tls-listener.ts";
import type { ListenOptions } from "./listen-options.ts";
import type { BufferedBytes } from "./connection-ledger.ts";
import type { ClientReading } from "./reading/fair-reading.ts";
import { type BlockTaker, ChunkCoalescer } from "../../lib/http/chunk-coalescer.ts";

/** Maximum bytes of a request body to buffer; beyond it, reading from the client stops. */
const MAX_BUFFERED_BYTES = 64 * 1024;
/** Maximum chunks of a request body to buffer: chunks of one byte cost far more memory than their content. */
const MAX_BUFFERED_CHUNKS = 64;
/** The number of chunks that count as one unit of event-loop time. */
const CHUNKS_PER_CHARGE = 64;

/** Creates a class of requests whose bodies are bounded and count towards the budget. */
export function createBoundedRequestClass(
  buffered: BufferedBytes,
  reading: ClientReading,
): typeof Message {
  return class BoundedRequest extends IncomingMessage implements BlockTaker {
    #buffered = 0;
    #chunks = 0;
    #coalescer: ChunkCoalescer | undefined;

    /** Node passes the body to this method; false stops reading. */
    override push(chunk: Buffer | null): boolean {
      if (chunk !== null) return this.#add(chunk);
      this.#coalescer?.flush();
      return super.push(null);
    }

    #add(chunk: Buffer): boolean {
      if (this.#chunks % CHUNKS_PER_CHARGE === 0) reading.charge(this.socket);
      // With a Content-Length, each read yields one chunk.
      if (this.headers["content-length"] !== undefined) return this.#take(chunk);
      this.#chunks += 1;
      this.#coalescer ??= new ChunkCoalescer(this);
      this.#coalescer.add(chunk);
      return !this.#isFull();
    }

    takeBlock(block: Buffer): void {
      this.#take(block);
    }

    #take(chunk: Buffer): boolean {
      const more = super.push(chunk);
      this.#buffered = this.readableLength === 0 ? 0 : this.#buffered + 1;
      if (this.#buffered === 0) return more;
      buffered.measure(this.socket);
      return more && !this.#isFull();
    }

    #isFull(): boolean {
      const { readableLength } = this;
      if (readableLength === 0) return false;
      return (
        this.#buffered >= MAX_BUFFERED_CHUNKS ||
        readableLength >= (buffered.scarce ? 1 : MAX_BUFFERED_BYTES)
      );
    }
  };
}

/**
 * Bytes of a response to buffer for a slow client before the backend is paused. With Node's 64 KiB every part of a
 * large response pauses the flow: a download over TLS took 1.12 times the processor time.
 */
export const HIGH_WATER_MARK = 256 * 1024;

/** Creates the server that reads HTTP/1.1, over TLS if there is a certificate. @param http2 whether TLS clients may choose HTTP/2. */
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
