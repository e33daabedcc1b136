import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from "node:http2";
import type { IncomingHttpHeaders as AnswerHeaders } from "node:http";
import type {
  AnswerHandler,
  BackendRequest,
  Connection,
  RequestControl,
} from "../http/connection.ts";
import { countGarbage } from "../http/scavenger.ts";
import { headersOf } from "../headers/incoming-headers.ts";
import { RequestBody } from "../http/client-body.ts";
import { BodyWriter, isSendableTarget, isSendableValue } from "../http1/response-parser.ts";
import { resetStream, sendTrailers } from "../../lib/http/http2-ends.ts";
import { nodeHttp2 } from "../../lib/http/node-http.ts";
import {
  collectBeforeSession,
  handlesOf,
  type Http2Handles,
} from "../../lib/node-internals/http2-handles.ts";
import { asError, BackendFault } from "../http/failures.ts";
import { pushTo, replacePush } from "../../lib/node-internals/node-sockets.ts";
import { lowerCase } from "../../lib/text/by-name.ts";

/**
 * Returns the header section of a request: names and values, alternating. Node sends the pseudo-header fields of
 * RFC 9113 §8.3.1 first.
 *
 * @throws BackendFault
 */
function requestFields(request: BackendRequest, scheme: string): string[] {
  const { method, path, headers } = request;
  if (!isSendableTarget(path)) throw new BackendFault("unsendable");
  const fields = [":method", method, ":scheme", scheme, ":path", path];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? "";
    const value = headers[i + 1] ?? "";
    if (!isSendableValue(value)) throw new BackendFault("unsendable");
    fields.push(name === "Host" ? ":authority" : lowerCase(name), value);
  }
  // The only value that HTTP/2 allows (RFC 9113 §8.2.2). gRPC servers look for it.
  if (request.acceptsTrailers === true) fields.push("te", "trailers");
  return fields;
}

interface ResponseHead {
  readonly status: number;
  readonly headers: AnswerHeaders;
}

/** The maximum size of a header or trailer section, in bytes. Node announces it to the backend, but does not enforce it. */
export const MAX_HEADER_BYTES = 64 * 1024;

/**
 * Separates the status from the fields. Node has checked the pseudo-header fields, and refuses fields about a connection.
 *
 * @param raw names and values, alternating. The status comes first, as the only pseudo-header field (RFC 9113 §8.3.2).
 * @throws BackendFault for an invalid status, or too many bytes.
 */
function responseHead(raw: readonly string[]): ResponseHead {
  const status = raw[0] === ":status" ? Number(raw[1]) : 0;
  if (status < 100 || status === 101) throw new BackendFault("invalid_http2", "invalid status");
  return { status, headers: limitedFields(raw, 2) };
}

/** Returns the fields by name. @param from index of the first one. @throws BackendFault if they are too large. */
function limitedFields(raw: readonly string[], from = 0): AnswerHeaders {
  let bytes = 0;
  for (const text of raw) bytes += text.length;
  if (bytes > MAX_HEADER_BYTES)
    throw new BackendFault("invalid_http2", "fields of more than 64 KiB");
  return headersOf(raw, from);
}

/** Receives the events of a stream. An exception that it throws aborts the request. */
interface StreamListener {
  /** Whether it ignores further events. */
  readonly isOver: boolean;
  /** Node queues a part of the answer, or null at its end. */
  added(stream: ClientHttp2Stream, part: Buffer | null): void;
  onHead(flags: number, raw: readonly string[]): void;
  onTrailers(raw: readonly string[]): void;
  onData(part: Buffer): void;
  onEnd(): void;
  /** The stream has closed, which may happen before its end. */
  onClose(): void;
  abort(error: Error): void;
}

/** The listener of a stream. All streams share the functions below, since closures for each would take time and memory. */
const LISTENER: unique symbol = Symbol("listener");

declare module "node:http2" {
  interface ClientHttp2Stream {
    [LISTENER]?: StreamListener;
  }
}

/** Passes all events of a stream to a listener, except the parts of its response. */
function listenTo(stream: ClientHttp2Stream, listener: StreamListener): void {
  stream[LISTENER] = listener;
  replacePush(stream, pushCounted);
  stream.on("headers", onHead).on("response", onHead).on("trailers", onTrailers);
  stream.on("end", onEnd).on("error", onClose).on("close", onClose);
}

/** Passes on the parts of the response as they arrive. */
function readFrom(stream: ClientHttp2Stream): void {
  stream.on("data", onData);
}

/** Replaces `push` of a stream. */
function pushCounted(
  this: ClientHttp2Stream,
  part: Buffer | null,
  encoding?: BufferEncoding,
): boolean {
  this[LISTENER]?.added(this, part);
  return pushTo(this, part, encoding);
}

const onHead = guarded((listener, _headers: unknown, flags: number, raw: string[]) =>
  listener.onHead(flags, raw),
);
const onTrailers = guarded((listener, _headers: unknown, _flags: number, raw: string[]) =>
  listener.onTrailers(raw),
);
const onData = guarded((listener, part: Buffer) => listener.onData(part));
const onEnd = guarded((listener) => listener.onEnd());

function guarded<Details extends unknown[]>(
  act: (listener: StreamListener, ...details: Details) => void,
) {
  return function (this: ClientHttp2Stream, ...details: Details): void {
    const listener = this[LISTENER];
    if (listener === undefined || listener.isOver) return;
    try {
      act(listener, ...details);
    } catch (error) {
      listener.abort(asError(error));
    }
  };
}

function onClose(this: ClientHttp2Stream): void {
  this[LISTENER]?.onClose();
}

/** The memory that a waiting part takes in addition to its bytes. */
const PART_BYTES = 256;
/** Maximum number of parts that wait for a client, since each takes memory: parts of 16 bytes would fill the window. */
const MAX_PARTS = 4_096;

/** How long a backend that has responded may read the rest of a body that was already passed to the connection, in milliseconds. */
const AFTER_ANSWER_MS = 1_000;

/** The connection of a stream. */
interface Owner {
  readonly scheme: string;
  /** Whether it has carried requests before. */
  readonly wasUsed: boolean;
  /** A request is sent. */
  begun(): void;
  /** A part of a response has arrived. */
  heard(): void;
  /** The stream has ended, and another may open. */
  ended(stream: BackendStream): void;
  /** Why a stream was closed. @param id of the stream. @param code of its RST_STREAM. @param answered whether its answer had begun. */
  faultOf(id: number, code: number, answered: boolean): Error;
}

/** One request on a stream of a shared connection. */
export class BackendStream implements Connection, RequestControl {
  readonly socket = undefined;
  readonly #request: BackendRequest;
  readonly #handler: AnswerHandler;
  readonly #owner: Owner;
  #stream: ClientHttp2Stream | undefined;
  /** Undefined once the response is complete. */
  #handles: Http2Handles | undefined;
  #sender: BodyWriter | undefined;
  #sent = false;
  #answered = false;
  #over = false;
  #trailers: IncomingHttpHeaders | undefined;
  /** Parts of the response that wait for the client. */
  #waiting = 0;
  /** Whether the stream was closed before the backend completed its response; undefined until its end has arrived. */
  #isCut: boolean | undefined;

  constructor(request: BackendRequest, handler: AnswerHandler, owner: Owner) {
    this.#request = request;
    this.#handler = handler;
    this.#owner = owner;
  }

  get isOver(): boolean {
    return this.#over;
  }

  get writableNeedDrain(): boolean {
    return this.#stream?.writableNeedDrain === true;
  }

  get bufferedBytes(): number {
    const { readableLength = 0, writableLength = 0 } = this.#stream ?? {};
    return readableLength + writableLength + this.#waiting * PART_BYTES;
  }

  /** Sends the request. Reports a failure to its handler. */
  open(session: ClientHttp2Session): void {
    try {
      this.#handler.onConnection(this);
      this.#handler.onRequestStart(this, this.#owner.wasUsed);
      if (this.#over) return;
      this.#owner.begun();
      this.#send(session);
    } catch (error) {
      this.abort(asError(error));
    }
  }

  #send(session: ClientHttp2Session): void {
    const { body } = this.#request;
    const streams = body instanceof RequestBody;
    const stream = session.request(requestFields(this.#request, this.#owner.scheme), {
      endStream: !streams && !(body instanceof Buffer),
      waitForTrailers: streams,
    });
    this.#stream = stream;
    // The first stream of a session has no handle yet.
    if (stream.pending) stream.once("ready", () => (this.#handles = handlesOf(stream)));
    else this.#handles = handlesOf(stream);
    listenTo(stream, this);
    if (streams) this.#sendParts(stream, body);
    else {
      if (body instanceof Buffer) {
        stream.end(body);
        this.#handler.onBodySent();
      }
      this.#onSent();
    }
  }

  #sendParts(stream: ClientHttp2Stream, body: RequestBody): void {
    this.#sender = new BodyWriter(stream, body, false, {
      onBodySent: () => this.#handler.onBodySent(),
      onRequestSent: () => {
        stream.end();
        this.#onSent();
      },
      onBodyError: (error) => this.abort(error),
    });
    stream.on("wantTrailers", () => this.#sendTrailers(stream));
  }

  /** Refused trailers end the request, so that the backend does not consider it complete. */
  #sendTrailers(stream: ClientHttp2Stream): void {
    if (this.#over) return;
    try {
      sendTrailers(stream, headersOf(this.#request.trailers?.() ?? []));
    } catch (error) {
      this.abort(asError(error));
    }
  }

  #onSent(): void {
    this.#sent = true;
    this.#sender = undefined;
    this.#handler.onRequestSent();
  }

  /**
   * Node adds a part to the stream, or its end. A reset without an error code looks like an end, but cuts the body off. After a
   * complete response it is a second end: the backend needs no more of the request (RFC 9113 §8.1).
   */
  added(stream: ClientHttp2Stream, chunk: Buffer | null): void {
    if (chunk === null) this.#isCut ??= stream.closed;
    else if ((this.#waiting += 1) > MAX_PARTS) {
      this.abort(new BackendFault("invalid_http2", "too many small parts"));
    }
  }

  onHead(flags: number, raw: readonly string[]): void {
    // The header section was too large.
    if (this.#stream?.closed === true && this.#stream.rstCode !== 0) return this.onClose();
    const { status, headers } = responseHead(raw);
    this.#owner.heard();
    if (!this.#answered) this.#handler.onResponseStarted();
    this.#answered = true;
    this.#handler.onResponseStart(this, status, headers);
    if (status < 200 || this.#over) return;
    if ((flags & nodeHttp2().constants.NGHTTP2_FLAG_END_STREAM) !== 0) {
      this.#stream?.resume();
      this.onEnd();
    } else if (this.#stream !== undefined) readFrom(this.#stream);
  }

  onTrailers(raw: readonly string[]): void {
    this.#trailers = limitedFields(raw);
  }

  onData(chunk: Buffer): void {
    this.#waiting -= 1;
    this.#owner.heard();
    countGarbage(chunk.length);
    this.#handler.onResponseData(this, chunk);
  }

  onEnd(): void {
    if (this.#isCut === true) return this.onClose();
    this.#handles = undefined;
    this.#endRequest();
    this.#leave();
    this.#handler.onResponseEnd(this, this.#trailers);
  }

  /** A backend that responds before it has read the body may never read the rest. */
  #endRequest(): void {
    if (!this.#sent) this.#reset(nodeHttp2().constants.NGHTTP2_NO_ERROR);
    else if (this.#stream?.writableFinished === false) {
      // Without an error, Node would wait until the rest is written.
      const end = (): void => this.#reset(nodeHttp2().constants.NGHTTP2_CANCEL);
      setTimeout(end, AFTER_ANSWER_MS).unref();
    }
  }

  onClose(): void {
    if (this.#handles !== undefined) collectBeforeSession(this.#handles);
    this.#handles = undefined;
    if (this.#over) return;
    const { id = 0, rstCode = 0 } = this.#stream ?? {};
    this.#fail(this.#owner.faultOf(id, rstCode, this.#answered));
  }

  /** Ends the request, and notifies the backend. */
  abort(error: Error): void {
    if (this.#over) return;
    this.#reset(nodeHttp2().constants.NGHTTP2_CANCEL);
    this.#fail(error);
  }

  #reset(code: number): void {
    if (this.#stream !== undefined) resetStream(this.#stream, code);
  }

  #fail(error: Error): void {
    this.#leave();
    this.#handler.onResponseError(this, error);
  }

  #leave(): void {
    this.#over = true;
    this.#sender?.stop();
    this.#sender = undefined;
    this.#owner.ended(this);
  }

  pause(): void {
    this.#stream?.pause();
  }

  resume(): void {
    this.#stream?.resume();
  }
}
