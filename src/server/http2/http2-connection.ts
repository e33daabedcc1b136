import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { BufferedBytes, BufferHolder } from "../../core/buffered-bytes.ts";
import type { ClientReading } from "../../core/request/client-reading.ts";
import { GateError } from "../../core/request/errors.ts";
import { SERVED_METHODS } from "../request/intake.ts";
import type { Pipeline } from "../request/pipeline.ts";
import { headSize, readHttp2Head } from "./http2-head.ts";
import { Http2Request } from "./http2-request.ts";
import { Http2Response } from "./http2-response.ts";
import { type Http2Limits, settingsFor, startHttp2 } from "./http2-session.ts";

export interface Http2ConnectionOptions {
  readonly limits: () => Http2Limits;
  readonly pipeline: Pick<Pipeline, "handle" | "refuse">;
  readonly buffered: BufferedBytes;
  readonly reading: ClientReading;
}

/** The largest stream number: tells a client that the connection ends, but that what is on its way is served. */
const LAST_STREAM = 2 ** 31 - 1;
const NO_ERROR = 0;

/** One HTTP/2 connection, and the responses under way on it. */
export class Http2Connection implements BufferHolder {
  readonly socket: Socket;
  readonly responses = new Set<Http2Response>();
  readonly #session: ServerHttp2Session;
  readonly #options: Http2ConnectionOptions;
  #leaving = false;

  constructor(socket: Socket, options: Http2ConnectionOptions) {
    const { limits, reading } = options;
    this.socket = socket;
    this.#options = options;
    const session = startHttp2(socket, limits());
    this.#session = session;
    // Broken frames, or a broken connection: Node has ended it.
    session.on("error", () => socket.destroy());
    session.on("stream", (stream, _headers, _flags, raw: string[]) => this.#onStream(stream, raw));
    const charge = (): void => reading.charge(socket);
    session.on("ping", charge).on("remoteSettings", charge);
  }

  /** What is buffered for the requests, in bytes. */
  get bufferedBytes(): number {
    let bytes = 0;
    for (const { req, writableLength, transfer } of this.responses) {
      bytes += req.readableLength + writableLength + (transfer?.holder?.bufferedBytes ?? 0);
    }
    return bytes;
  }

  /** Applies new limits. */
  change(limits: Http2Limits): void {
    if (!this.#session.closed) this.#session.settings(settingsFor(limits));
  }

  /** Tells the client to open another connection. What it sends until then is still served. */
  announceClose(): void {
    if (this.#leaving || this.#session.closed) return;
    this.#leaving = true;
    this.#session.goaway(NO_ERROR, LAST_STREAM);
  }

  /** Takes no more requests, and closes the connection when those under way are answered. */
  close(): void {
    if (!this.#session.closed) this.#session.close();
  }

  #onStream(stream: ServerHttp2Stream, raw: readonly string[]): void {
    const { pipeline, reading } = this.#options;
    reading.charge(this.socket);
    // The client has reset it in the same read.
    if (stream.closed || stream.destroyed) return;
    const head = readHttp2Head(raw);
    const request = new Http2Request(stream, this.socket, head, this.#options);
    const response = new Http2Response(stream, request);
    this.responses.add(response);
    response.once("close", () => this.responses.delete(response));
    const refusal = head.refusal ?? this.#refusalOf(head.method, raw);
    if (refusal === undefined) void pipeline.handle(request, response);
    else pipeline.refuse(request, response, refusal);
  }

  #refusalOf(method: string, raw: readonly string[]): GateError | undefined {
    if (headSize(raw) > this.#options.limits().headerBytes) {
      return new GateError("header_too_large");
    }
    if (method !== "CONNECT") return undefined;
    return new GateError("method_not_allowed", { allow: SERVED_METHODS });
  }
}
