import type { IncomingHttpHeaders } from "node:http";
import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
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
import type { BackendSession } from "./http2-pool.ts";

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

/** The maximum size of a header or trailer section, in bytes. Node announces it to the backend, but does not enforce it. */
export const MAX_HEADER_BYTES = 64 * 1024;

/** Returns the fields by name. @param from index of the first one. @throws BackendFault if they are too large. */
function limitedFields(raw: readonly string[], from = 0): IncomingHttpHeaders {
  let bytes = 0;
  for (const text of raw) bytes += text.length;
  if (bytes > MAX_HEADER_BYTES)
    throw new BackendFault("invalid_http2", "fields of more than 64 KiB");
  return headersOf(raw, from);
}

/** The request on a stream. All streams share the listeners below, since closures for each would take time and memory. */
const LISTENER: unique symbol = Symbol("listener");

declare module "node:http2" {
  interface ClientHttp2Stream {
    [LISTENER]?: BackendStream;
  }
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

/** An exception aborts the request. */
function guarded<Details extends unknown[]>(
  act: (listener: BackendStream, ...details: Details) => void,
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

/** One request on a stream of a shared connection. */
export class BackendStream implements Connection, RequestControl {
  readonly socket = undefined;
  readonly #request: BackendRequest;
  readonly #handler: AnswerHandler;
  readonly #owner: BackendSession;
  #stream: ClientHttp2Stream | undefined;
  /** Undefined once the response is complete. */
  #handles: Http2Handles | undefined;
  #sender: BodyWriter | undefined;
  #sent = false;
  #answered = false;
  /** Whether it ignores further events. */
  isOver = false;
  #trailers: IncomingHttpHeaders | undefined;
  /** Parts of the response that wait for the client. */
  #waiting = 0;
  /** Whether the stream was closed before the backend completed its response; undefined until its end has arrived. */
  #isCut: boolean | undefined;

  constructor(request: BackendRequest, handler: AnswerHandler, owner: BackendSession) {
    this.#request = request;
    this.#handler = handler;
    this.#owner = owner;
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
      this.#handler.onConnection?.(this);
      this.#handler.onRequestStart(this, this.#owner.wasUsed);
      if (this.isOver) return;
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
    stream[LISTENER] = this;
    replacePush(stream, pushCounted);
    stream.on("headers", onHead).on("response", onHead).on("trailers", onTrailers);
    stream.on("end", onEnd).on("error", onClose).on("close", onClose);
    if (streams) this.#sendParts(stream, body);
    else {
      if (body instanceof Buffer) {
        stream.end(body);
        this.#handler.onBodySent?.();
      }
      this.#onSent();
    }
  }

  #sendParts(stream: ClientHttp2Stream, body: RequestBody): void {
    this.#sender = new BodyWriter(stream, body, false, {
      onBodySent: () => this.#handler.onBodySent?.(),
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
    if (this.isOver) return;
    try {
      sendTrailers(stream, headersOf(this.#request.trailers?.() ?? []));
    } catch (error) {
      this.abort(asError(error));
    }
  }

  #onSent(): void {
    this.#sent = true;
    this.#sender = undefined;
    this.#handler.onRequestSent?.();
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
    // Node has checked that the status comes first, and that there is no field about a connection (RFC 9113 §8.3.2).
    const status = raw[0] === ":status" ? Number(raw[1]) : 0;
    if (status < 100 || status === 101) throw new BackendFault("invalid_http2", "invalid status");
    const headers = limitedFields(raw, 2);
    this.#owner.heard();
    if (!this.#answered) this.#handler.onResponseStarted?.();
    this.#answered = true;
    this.#handler.onResponseStart(status, headers);
    if (status < 200 || this.isOver) return;
    if ((flags & nodeHttp2().constants.NGHTTP2_FLAG_END_STREAM) !== 0) {
      this.#stream?.resume();
      this.onEnd();
    } else this.#stream?.on("data", onData);
  }

  onTrailers(raw: readonly string[]): void {
    this.#trailers = limitedFields(raw);
  }

  onData(chunk: Buffer): void {
    this.#waiting -= 1;
    this.#owner.heard();
    countGarbage(chunk.length);
    this.#handler.onResponseData(chunk);
  }

  onEnd(): void {
    if (this.#isCut === true) return this.onClose();
    this.#handles = undefined;
    this.#endRequest();
    this.#leave();
    this.#handler.onResponseEnd(this.#trailers);
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

  /** The stream has closed, which may happen before its end. */
  onClose(): void {
    if (this.#handles !== undefined) collectBeforeSession(this.#handles);
    this.#handles = undefined;
    if (this.isOver) return;
    const { id = 0, rstCode = 0 } = this.#stream ?? {};
    this.#fail(this.#owner.faultOf(id, rstCode, this.#answered));
  }

  /** Ends the request, and notifies the backend. */
  abort(error: Error): void {
    if (this.isOver) return;
    this.#reset(nodeHttp2().constants.NGHTTP2_CANCEL);
    this.#fail(error);
  }

  #reset(code: number): void {
    if (this.#stream !== undefined) resetStream(this.#stream, code);
  }

  #fail(error: Error): void {
    this.#leave();
    this.#handler.onResponseError(error);
  }

  #leave(): void {
    this.isOver = true;
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
