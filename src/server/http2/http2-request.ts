import type { IncomingHttpHeaders } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { IncomingRequest } from "../../core/request/http-message.ts";
import { finishStream } from "../../lib/http/http2-ends.ts";
import { Http2Body, type Http2BodyOptions } from "./http2-body.ts";
import { valuesByName } from "./http2-fields.ts";
import type { Http2Head } from "./http2-head.ts";

/** The request on a stream. */
const REQUEST: unique symbol = Symbol("request");

declare module "node:http2" {
  interface ServerHttp2Stream {
    [REQUEST]?: Http2Request;
  }
}

/** Never written to. */
const NONE: string[] = [];

/** A request on an HTTP/2 stream. */
export class Http2Request implements IncomingRequest {
  readonly httpVersion = "2.0";
  readonly method: string;
  readonly url: string;
  readonly rawHeaders: string[];
  rawTrailers: string[] = NONE;
  readonly socket: Socket;
  readonly #stream: ServerHttp2Stream;
  /** Undefined if there is none. */
  readonly #body: Http2Body | undefined;
  /** Whether it requests a tunnel: the bytes after the head are then not a body. */
  readonly isTunnel: boolean;
  #distinct: Record<string, string[]> | undefined;

  constructor(
    stream: ServerHttp2Stream,
    socket: Socket,
    { method, target, fields, isTunnel }: Http2Head,
    options: Http2BodyOptions,
  ) {
    this.#stream = stream;
    this.socket = socket;
    this.method = method;
    this.url = target;
    this.rawHeaders = fields;
    this.isTunnel = isTunnel;
    if (stream.endAfterHeaders) return;
    this.#body = new Http2Body(stream, socket, options);
    stream[REQUEST] = this;
    stream.on("trailers", onTrailers);
  }

  get hasBody(): boolean {
    return this.#body !== undefined && !this.isTunnel;
  }

  get headers(): IncomingHttpHeaders {
    const joined: IncomingHttpHeaders = Object.create(null);
    for (const [name, values] of Object.entries(this.headersDistinct)) {
      joined[name] = values.join(", ");
    }
    return joined;
  }

  get headersDistinct(): Record<string, string[]> {
    return (this.#distinct ??= valuesByName(this.rawHeaders));
  }

  get complete(): boolean {
    return this.#body === undefined || this.#body.whole;
  }

  get readableEnded(): boolean {
    return this.#body === undefined || this.#stream.readableEnded;
  }

  get readableLength(): number {
    return this.#body === undefined ? 0 : this.#stream.readableLength;
  }

  get destroyed(): boolean {
    return this.#stream.destroyed;
  }

  on(event: string, listener: (chunk: Buffer) => void): this {
    this.#stream.on(event, listener);
    if (event === "end") this.#emitPastEnd(listener);
    return this;
  }

  once(event: string, listener: (chunk: Buffer) => void): this {
    this.#stream.once(event, listener);
    if (event === "end") this.#emitPastEnd(listener);
    return this;
  }

  off(event: string, listener: (chunk: Buffer) => void): this {
    this.#stream.off(event, listener);
    return this;
  }

  /** Calls a late listener for `end`: Node ends an empty body before anyone reads it. Messages of HTTP/1.1 wait. */
  #emitPastEnd(listener: (chunk: Buffer) => void): void {
    const stream = this.#stream;
    if (!stream.readableEnded) return;
    process.nextTick(() => {
      if (stream.listenerCount("end", listener) > 0) Reflect.apply(listener, this, []);
    });
  }

  /**
   * Ends the stream without an error once the answer is sent (RFC 9113 §8.1). Node's `close` would wait for that, too, but a
   * stream that is destroyed meanwhile is then never reset, and nghttp2 writes empty DATA frames for it without end.
   */
  abandon(): void {
    finishStream(this.#stream);
  }

  pause(): this {
    this.#stream.pause();
    return this;
  }

  resume(): this {
    this.#stream.resume();
    return this;
  }
}

function onTrailers(
  this: ServerHttp2Stream,
  _trailers: unknown,
  _flags: unknown,
  raw: string[],
): void {
  const request = this[REQUEST];
  if (request !== undefined) request.rawTrailers = raw;
}
