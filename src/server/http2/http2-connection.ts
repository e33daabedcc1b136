import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { BufferedBytes, BufferHolder } from "../../core/buffered-bytes.ts";
import type { ClientReading } from "../../core/request/client-reading.ts";
import { GateError } from "../../core/request/errors.ts";
import type { Observer } from "../../core/observer.ts";
import { cut, refuseUnderWay } from "../request/cut-request.ts";
import { SERVED_METHODS } from "../request/intake.ts";
import type { Pipeline } from "../request/pipeline.ts";
import { headSize, type Http2Head, readHttp2Head } from "./http2-head.ts";
import { Http2Request } from "./http2-request.ts";
import { Http2Response } from "./http2-response.ts";
import { asUpgrade, isTunnel, opensWebSocket } from "./http2-upgrade.ts";
import { type Http2Settings, settingsFor, startHttp2 } from "./http2-session.ts";

export interface Http2ConnectionOptions {
  readonly settings: () => Http2Settings;
  readonly pipeline: Pick<Pipeline, "handle" | "handleUpgrade" | "refuse">;
  readonly buffered: BufferedBytes;
  readonly reading: ClientReading & { chargeUpgrade(connection: Socket): void };
  readonly observer: Pick<Observer, "requestRefused">;
  readonly realm: () => string;
}

/** The largest stream number: announces the end of the connection while requests on their way are still served. */
const LAST_STREAM = 2 ** 31 - 1;
/** Error code of a connection that ends in order (RFC 9113 §7). */
const NO_ERROR = 0;
/**
 * As in nginx: the maximum ratio of frame bytes to the bytes of heads and bodies in them, and the bytes allowed
 * beyond that.
 */
const FRAME_RATIO = 8;
const FREE_BYTES = 1024 * 1024;
/** How long a closing connection waits for the client to read everything, in milliseconds. */
const CLOSING_MS = 1_000;
/**
 * The bytes that a stream counts in addition to its head and body. With its exchange and its backend connection it
 * takes 23 KB.
 */
const STREAM_BYTES = 6 * 1024;
/** Streams of a connection that are not counted: HTTP/1.1 would count neither. */
const FREE_STREAMS = 1;

/** After the head, everything is read from the stream. */
const NOTHING = Buffer.alloc(0);

function ignore(): void {}

/** One HTTP/2 connection, and the responses under way on it. */
export class Http2Connection implements BufferHolder {
  readonly socket: Socket;
  readonly responses = new Set<Http2Response>();
  readonly #session: ServerHttp2Session;
  readonly #options: Http2ConnectionOptions;
  /** Whether the client has sent its settings, which come first. */
  #begun = false;
  #announced = false;
  /** Since when no request is under way, in milliseconds. */
  #idleSince = performance.now();
  /** Bytes of heads and bodies of requests that are over. */
  #useful = 0;

  constructor(socket: Socket, options: Http2ConnectionOptions) {
    const { settings, reading } = options;
    this.socket = socket;
    this.#options = options;
    const session = startHttp2(socket, settings().limits);
    this.#session = session;
    // Nothing more comes from the client: answers may still go, but a WebSocket has two directions.
    socket.once("end", () => {
      for (const response of this.responses) if (response.req.isTunnel) response.abort();
    });
    // Broken frames, or a broken connection: Node tells the client why, and closes it.
    session.on("error", ignore);
    session.on("stream", (stream, _headers, _flags, raw: string[]) => this.#onStream(stream, raw));
    session.on("ping", () => reading.charge(socket));
    session.on("remoteSettings", () => {
      this.#begun = true;
      reading.charge(socket);
    });
  }

  /** The bytes buffered for the requests. */
  get bufferedBytes(): number {
    let bytes = 0;
    for (const { req, writableLength, transfer, headBytes } of this.responses) {
      bytes += req.readableLength + writableLength + (transfer?.holder?.bufferedBytes ?? 0);
      bytes += STREAM_BYTES + headBytes;
    }
    return Math.max(0, bytes - FREE_STREAMS * STREAM_BYTES);
  }

  /** Applies the settings in force. */
  change(): void {
    if (!this.#session.closed) this.#session.settings(settingsFor(this.#options.settings().limits));
  }

  /** Tells the client to open a new connection. Requests that it sends until then are still served. */
  announceClose(): void {
    if (this.#announced || this.#session.closed) return;
    this.#announced = true;
    this.#session.goaway(NO_ERROR, LAST_STREAM);
  }

  /** Tells the client which streams were processed. */
  sayGoodbye(): void {
    if (!this.#session.destroyed) this.#session.goaway(NO_ERROR);
  }

  /** Takes no more requests, and closes the connection when those under way are answered. */
  close(): void {
    if (!this.#session.closed) this.#session.close();
  }

  /** Ends what takes longer than the time limits allow, and a connection whose frames carry hardly anything. */
  look(): void {
    const now = performance.now();
    const { timeouts } = this.#options.settings();
    for (const response of this.responses) this.#lookAt(response, now);
    if (this.#isFlood()) {
      this.#options.observer.requestRefused("http2_flood");
      cut(this.socket, "http2_flood");
      return;
    }
    if (this.responses.size > 0) {
      this.#idleSince = now;
      return;
    }
    const idle = now - this.#idleSince;
    if (idle > (this.#begun ? timeouts.keepAlive : timeouts.header)) this.close();
    if (this.#session.closed && idle > CLOSING_MS) this.socket.destroySoon();
  }

  #lookAt(response: Http2Response, now: number): void {
    const { settings, observer, realm } = this.#options;
    // The handshake and the WebSocket have their own time limits.
    if (response.req.isTunnel) return;
    const { request, stall } = settings().timeouts;
    const idle = response.transfer?.idleMs;
    const late =
      idle === undefined ? now - response.started > request : response.stalledFor(now) > idle;
    if (late && !response.req.complete) {
      if (refuseUnderWay(response, "request_timeout", realm())) {
        observer.requestRefused("request_timeout");
      }
    } else if (response.stalledFor(now) > stall) {
      observer.requestRefused("stalled");
      response.blame("stalled");
      response.abort();
    }
  }

  /** Whether a client sends frames for their own sake: PING, SETTINGS, WINDOW_UPDATE, empty DATA. */
  #isFlood(): boolean {
    const frames = this.socket.bytesRead + this.socket.bytesWritten;
    if (frames / FRAME_RATIO <= FREE_BYTES) return false;
    let useful = this.#useful;
    for (const response of this.responses) useful += response.usefulBytes;
    return frames / FRAME_RATIO > useful + FREE_BYTES;
  }

  #onStream(stream: ServerHttp2Stream, raw: readonly string[]): void {
    const { reading, buffered } = this.#options;
    reading.charge(this.socket);
    buffered.touch(this.socket);
    // The client has reset it in the same read, or it is malformed behind its head: Node still says so.
    stream.on("error", ignore);
    if (stream.closed || stream.destroyed) return;
    this.#begun = true;
    const sent = readHttp2Head(raw);
    const headBytes = headSize(raw);
    const head = opensWebSocket(sent) ? asUpgrade(sent) : sent;
    const request = new Http2Request(stream, this.socket, head, this.#options, isTunnel(sent));
    const response = new Http2Response(stream, request, headBytes, this);
    this.responses.add(response);
    this.#pass(head, request, response);
  }

  over(response: Http2Response): void {
    this.responses.delete(response);
    this.#useful += response.usefulBytes;
    this.#idleSince = performance.now();
  }

  #pass(head: Http2Head, request: Http2Request, response: Http2Response): void {
    const { pipeline, reading } = this.#options;
    const refusal = head.refusal ?? this.#refusalOf(head, response.headBytes);
    if (refusal !== undefined) pipeline.refuse(request, response, refusal);
    else if (request.isTunnel) {
      reading.chargeUpgrade(this.socket);
      const stream = response.tunnel();
      void pipeline.handleUpgrade(request, response, { stream, head: NOTHING });
    } else void pipeline.handle(request, response);
  }

  #refusalOf({ method, protocol }: Http2Head, headBytes: number): GateError | undefined {
    if (headBytes > this.#options.settings().limits.headerBytes) {
      return new GateError("header_too_large");
    }
    if (method !== "CONNECT") return undefined;
    if (protocol !== undefined) return new GateError("protocol_unsupported");
    return new GateError("method_not_allowed", { allow: SERVED_METHODS });
  }
}
