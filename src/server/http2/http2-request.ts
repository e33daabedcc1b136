import type { IncomingHttpHeaders } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { IncomingRequest } from "../../core/request/http-message.ts";
import { destroyStream, finishStream } from "../../lib/http/http2-ends.ts";
import { valuesByName } from "./http2-response.ts";
import type { ListenOptions } from "../listener/listen-options.ts";
import { pushTo, replacePush } from "../../lib/node-internals/node-sockets.ts";
import { type BlockTaker, ChunkCoalescer } from "../../lib/http/chunk-coalescer.ts";
import type { GateError } from "../../core/request/errors.ts";
import { ambiguous } from "../request/intake.ts";

/** The number of DATA frames that count as one unit of event-loop time. */
const FRAMES_PER_CHARGE = 64;

/** Never written to. */
const NONE: string[] = [];

/** The body of a stream. All streams share the functions that Node calls, since creating closures for each takes time. */
const BODY: unique symbol = Symbol("body");

declare module "node:http2" {
  interface ServerHttp2Stream {
    [BODY]?: Http2Body;
  }
}

type Http2BodyOptions = Pick<ListenOptions, "buffered" | "reading">;

/**
 * Bounds the body of a request, and tracks whether it is complete. The window of the stream bounds the unread bytes; each
 * DATA frame becomes a chunk, so short ones are coalesced.
 */
class Http2Body implements BlockTaker {
  readonly #stream: ServerHttp2Stream;
  readonly #socket: Socket;
  readonly #options: Http2BodyOptions;
  readonly #coalescer = new ChunkCoalescer(this);
  /** Whether the client has ended the body. */
  whole: boolean;
  trailers: string[] = NONE;
  #frames = 0;

  constructor(stream: ServerHttp2Stream, socket: Socket, options: Http2BodyOptions) {
    this.#stream = stream;
    this.#socket = socket;
    this.#options = options;
    stream[BODY] = this;
    // The body may have begun, or even ended, together with the head.
    this.whole = stream.state.remoteClose === 1;
    const arrived: unknown = stream.readableLength > 0 ? stream.read() : null;
    if (Buffer.isBuffer(arrived)) stream.unshift(arrived);
    replacePush(stream, addToBody);
    stream.on("trailers", onTrailers);
  }

  /** Node passes the body to this method. */
  add(chunk: Buffer | null): boolean {
    if (chunk === null) return this.#end();
    if (this.#frames % FRAMES_PER_CHARGE === 0) this.#options.reading.charge(this.#socket);
    this.#frames += 1;
    this.#coalescer.add(chunk);
    return this.#stream.readableLength < this.#stream.readableHighWaterMark;
  }

  /** Node also ends a body when the client resets the stream without an error: a truncated body would pass as complete. */
  #end(): boolean {
    this.#coalescer.flush();
    if (!this.whole && this.#stream.closed) {
      destroyStream(this.#stream, this.#stream.rstCode ?? 0);
      return false;
    }
    this.whole = true;
    return pushTo(this.#stream, null);
  }

  takeBlock(block: Buffer): void {
    if (this.#stream.destroyed) return;
    pushTo(this.#stream, block);
    if (this.#stream.readableLength > 0) this.#options.buffered.measure(this.#socket);
  }
}

/** Replaces `push` of a stream. */
function addToBody(this: ServerHttp2Stream, chunk: Buffer | null): boolean {
  return this[BODY]?.add(chunk) ?? false;
}

function onTrailers(
  this: ServerHttp2Stream,
  _trailers: unknown,
  _flags: unknown,
  raw: string[],
): void {
  const body = this[BODY];
  if (body !== undefined) body.trailers = raw;
}

/** The head of a request in the form of HTTP/1.1: without pseudo-header fields. */
export interface Http2Head {
  readonly method: string;
  /** Whether it asks for a tunnel, with or without a protocol (RFC 9113 §8.5, RFC 8441 §4). */
  readonly isTunnel: boolean;
  /** The path and query; `*` for OPTIONS. */
  readonly target: string;
  /** Extended CONNECT (RFC 8441): the protocol to be opened. */
  readonly protocol: string | undefined;
  /** Names and values, alternating, with one `host` instead of `:authority`, and one `cookie`. */
  readonly fields: string[];
  /** The error if the request is ambiguous. */
  readonly refusal: GateError | undefined;
}

/** The characters of a target (RFC 9112 §3.2). nghttp2 accepts bytes above them, which Node's HTTP/1.1 parser refuses. */
const TARGET = /^[!-~]*$/;

/**
 * Reads a header section. nghttp2 has already checked it (RFC 9113 §8.2, §8.3): names in lower case, only known
 * pseudo-header fields, each once and before all others, no connection-specific fields.
 *
 * @param raw names and values, alternating.
 */
export function readHttp2Head(raw: readonly string[]): Http2Head {
  const fields: string[] = [];
  let [method, target, cookie, hosts] = ["", "", "", 0];
  let protocol: string | undefined;
  let authority: string | undefined;
  let host: string | undefined;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? "";
    const value = raw[i + 1] ?? "";
    if (name.startsWith(":")) {
      if (name === ":method") method = value;
      else if (name === ":path") target = value;
      else if (name === ":authority") authority = value;
      else if (name === ":protocol") protocol = value;
    } else if (name === "host") {
      host = value;
      hosts += 1;
    } else if (name === "cookie") cookie = cookie === "" ? value : `${cookie}; ${value}`;
    else fields.push(name, value);
  }
  if (cookie !== "") fields.push("cookie", cookie);
  const named = authority ?? host;
  if (named !== undefined) fields.push("host", named);
  let refusal: GateError | undefined;
  if (hosts > 1 || (hosts === 1 && !sameHost(named, host))) refusal = ambiguous("host");
  else if (!TARGET.test(target)) refusal = ambiguous("target");
  return { method, isTunnel: method === "CONNECT", target, protocol, fields, refusal };
}

/** Whether `:authority` and `Host` name the same host (RFC 9113 §8.3.1). */
function sameHost(authority: string | undefined, host: string | undefined): boolean {
  return authority === host || authority?.toLowerCase() === host?.toLowerCase();
}

/** A request on an HTTP/2 stream. */
export class Http2Request implements IncomingRequest {
  readonly httpVersion = "2.0";
  readonly method: string;
  readonly url: string;
  readonly rawHeaders: string[];
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

  get rawTrailers(): string[] {
    return this.#body?.trailers ?? NONE;
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
