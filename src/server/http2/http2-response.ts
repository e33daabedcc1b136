import type { Duplex } from "node:stream";
import { EventEmitter } from "node:events";
import type { ServerHttp2Stream } from "node:http2";
import type { TrackedOutgoing } from "../../core/request/http-message.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { Transfer } from "../../core/request/transfer.ts";
import { destroyStream, sendTrailers } from "../../lib/http/http2-ends.ts";
import type { Http2Connection } from "./http2-connection.ts";
import type { Http2Request } from "./http2-request.ts";
import { reportUncaught } from "../../lib/async/isolation.ts";
import {
  collectBeforeSession,
  handlesOf,
  type Http2Handles,
} from "../../lib/node-internals/http2-handles.ts";
import { CONNECTION_FIELDS } from "../../lib/http/header-values.ts";
import { lowerCase } from "../../lib/text/by-name.ts";

/** The response on a stream. All streams share the functions below, since closures for each would take time and memory. */
const RESPONSE: unique symbol = Symbol("response");

declare module "node:http2" {
  interface ServerHttp2Stream {
    [RESPONSE]?: Http2Response;
  }
}

function onClose(this: ServerHttp2Stream): void {
  this[RESPONSE]?.onClose();
}

function onDrain(this: ServerHttp2Stream): void {
  this[RESPONSE]?.emit("drain");
}

function onWantTrailers(this: ServerHttp2Stream): void {
  this[RESPONSE]?.onWantTrailers();
}

/** Characters that are not allowed in a value (RFC 9110 §5.5), or that are not bytes. */
const NOT_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

/**
 * Creates the header section of a response, without fields that HTTP/2 forbids.
 *
 * @param fields names in any case and values, alternating.
 * @throws TypeError for a value with a control character.
 */
function http2Fields(status: number, fields: readonly string[]): string[] {
  const section = [":status", String(status)];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = lowerCase(fields[i] ?? "");
    const value = fields[i + 1] ?? "";
    if (CONNECTION_FIELDS.has(name)) continue;
    if (NOT_IN_VALUE.test(value)) throw new TypeError("invalid character in a field value");
    section.push(name, value);
  }
  return section;
}

/** Returns the values of each name. @param fields names and values, alternating. */
export function valuesByName(fields: readonly string[]): Record<string, string[]> {
  const values: Record<string, string[]> = Object.create(null);
  for (let i = 0; i + 1 < fields.length; i += 2) {
    (values[fields[i] ?? ""] ??= []).push(fields[i + 1] ?? "");
  }
  return values;
}

/** Error codes (RFC 9113 §7). */
const NO_ERROR = 0;
const INTERNAL_ERROR = 2;
const CANCEL = 8;

const OK = 200;

/** Never written to. */
const NONE: readonly never[] = [];

type State = "open" | "prepared" | "sent" | "ended" | "over";

/** The response on an HTTP/2 stream. Emits `close` when everything is sent, or the client has left. */
export class Http2Response
  extends EventEmitter<{ close: []; drain: [] }>
  implements TrackedOutgoing
{
  id = 0;
  whole = false;
  interruption: string | undefined;
  transfer: Transfer | undefined;
  permit: Permit | undefined;
  shouldKeepAlive = true;
  statusCode = 200;
  readonly req: Http2Request;
  /** Monotonic, in milliseconds. */
  readonly started = performance.now();
  /** The size of the request's head, in bytes. */
  readonly headBytes: number;
  readonly #stream: ServerHttp2Stream;
  /** Undefined for a request that was complete with its head. */
  readonly #handles: Http2Handles | undefined;
  readonly #connection: Http2Connection;
  #state: State = "open";
  /** Fields that were set one by one. */
  #single: string[] | undefined;
  /** The head, until it is sent with the first part of the body. */
  #head: readonly string[] = NONE;
  /** Whether the response has no body, whatever is written. */
  #bodiless = false;
  #waitsForTrailers = false;
  #listensForDrain = false;
  #trailers: readonly [string, string][] = NONE;
  #finished = false;
  /** Whether the stream is about to be reset. */
  #isAborted = false;

  /** The bytes that had passed at the last check, and when that number last changed. */
  #passed = 0;
  #movedAt = this.started;

  constructor(
    stream: ServerHttp2Stream,
    request: Http2Request,
    headBytes: number,
    connection: Http2Connection,
  ) {
    super();
    this.headBytes = headBytes;
    this.#stream = stream;
    this.#connection = connection;
    this.req = request;
    if (!request.complete) this.#handles = handlesOf(stream);
    stream[RESPONSE] = this;
    stream.on("close", onClose);
  }

  onClose(): void {
    if (this.#handles !== undefined && !this.req.complete) collectBeforeSession(this.#handles);
    const { rstCode, writableFinished } = this.#stream;
    this.#finished ||= this.#state === "ended" && writableFinished && rstCode === NO_ERROR;
    this.#over();
  }

  get headersSent(): boolean {
    return this.#state !== "open";
  }

  get destroyed(): boolean {
    return this.#isAborted || this.#stream.destroyed || this.#stream.closed;
  }

  get writableEnded(): boolean {
    return this.#state === "ended" || this.#state === "over";
  }

  get writableFinished(): boolean {
    return this.#finished;
  }

  get writableLength(): number {
    return this.#stream.writableLength;
  }

  get writableNeedDrain(): boolean {
    return this.#stream.writableNeedDrain;
  }

  get isCurrent(): boolean {
    return this.#state !== "over" && !this.#isAborted;
  }

  /** The bytes of the head and the bodies that have passed. */
  get usefulBytes(): number {
    return this.headBytes + (this.transfer?.bytesIn ?? 0) + (this.transfer?.bytesOut ?? 0);
  }

  /** How long no byte has moved in either direction, in milliseconds, measured from call to call. @param now monotonic. */
  stalledFor(now: number): number {
    const passed = this.usefulBytes - this.writableLength;
    if (passed !== this.#passed) {
      this.#passed = passed;
      this.#movedAt = now;
    }
    return now - this.#movedAt;
  }

  blame(reason: string): void {
    this.interruption ??= reason;
    if (this.transfer !== undefined) this.transfer.abortReason ??= reason;
  }

  /** Resets the stream, even if the client does not read. */
  abort(code = INTERNAL_ERROR): void {
    this.#isAborted = true;
    destroyStream(this.#stream, code);
  }

  destroy(): void {
    this.abort();
  }

  announceClose(): void {
    this.#connection.announceClose();
  }

  setHeader(name: string, value: string): void {
    (this.#single ??= []).push(name, value);
  }

  writeHead(status: number, reason: string | string[], fields: string[] = []): this {
    // HTTP/2 has no reason phrase.
    const all = typeof reason === "string" ? fields : reason;
    this.#head = http2Fields(status, this.#single === undefined ? all : [...this.#single, ...all]);
    this.statusCode = status;
    this.#state = "prepared";
    this.#bodiless = this.req.method === "HEAD" || status === 204 || status === 304;
    return this;
  }

  flushHeaders(): void {
    if (this.#state === "prepared") this.#respond(false);
  }

  /** Returns the stream of an extended CONNECT (RFC 8441 §5), whose head opens the tunnel. */
  tunnel() {
    const duplex: Duplex = this.#stream;
    return {
      /** The bytes of both directions. */
      duplex,
      /** Sends the head that opens the tunnel, and returns its status. @param fields names and values, alternating. */
      open: (fields: string[]): number => {
        this.writeHead(OK, fields);
        this.#state = "sent";
        if (!this.destroyed) this.#stream.respond(this.#head);
        return OK;
      },
      /** Resets the stream. */
      abort: (): void => this.abort(CANCEL),
    };
  }

  writeContinue(): void {
    if (!this.destroyed) this.#stream.additionalHeaders({ ":status": 100 });
  }

  writeInformation(status: number, fields: string[]): void {
    if (this.destroyed) return;
    const headers = valuesByName(http2Fields(status, fields));
    this.#stream.additionalHeaders({ ...headers, ":status": status });
  }

  write(chunk: Buffer, taken?: () => void): boolean {
    this.flushHeaders();
    if (this.#bodiless || this.destroyed || this.writableEnded) return true;
    const keepsUp = this.#stream.write(chunk, taken);
    // Most streams never wait for the client.
    if (!keepsUp && !this.#listensForDrain) {
      this.#listensForDrain = true;
      this.#stream.on("drain", onDrain);
    }
    return keepsUp;
  }

  /** Only a response without a length can have trailers. */
  addTrailers(fields: [string, string][]): void {
    this.#trailers = fields;
  }

  end(body: string | Buffer = "", encoding?: BufferEncoding): this {
    if (this.#state !== "prepared" && this.#state !== "sent") return this;
    const isLast = body.length === 0 && this.#trailers.length === 0;
    if (this.#state === "prepared") this.#respond(isLast);
    this.#state = "ended";
    if (this.destroyed) return this;
    // Called when everything has been written, or will not be. A response that may have trailers ends with them.
    const finished = this.#waitsForTrailers
      ? undefined
      : (error?: Error | null): void => {
          if (error || this.#state !== "ended") return;
          this.#finished = true;
          this.#over();
        };
    if (this.#bodiless || body.length === 0) this.#stream.end(finished);
    else if (typeof body === "string") this.#stream.end(body, encoding ?? "utf8", finished);
    else this.#stream.end(body, finished);
    return this;
  }

  #respond(isLast: boolean): void {
    this.#state = "sent";
    if (this.destroyed) return;
    const endStream = isLast || this.#bodiless;
    this.#waitsForTrailers = !endStream && !this.#head.includes("content-length");
    if (this.#waitsForTrailers) this.#stream.on("wantTrailers", onWantTrailers);
    try {
      this.#stream.respond(this.#head, { endStream, waitForTrailers: this.#waitsForTrailers });
    } catch (error) {
      // Node refuses the head before it sends anything, so that an error can still be answered.
      this.#state = "open";
      throw error;
    }
    this.#head = NONE;
  }

  /** Everything before the trailers is written. */
  onWantTrailers(): void {
    if (this.#isAborted) return;
    try {
      sendTrailers(this.#stream, valuesByName(this.#trailers.flat()));
    } catch (error) {
      reportUncaught(error);
      // The client must not take the answer for complete.
      this.abort();
      return;
    }
    this.#finished = true;
    this.#over();
  }

  #over(): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#connection.over(this);
    this.emit("close");
    // The rest of the request is not read. Resetting the stream before the trailers were sent would drop them.
    if (this.interruption !== undefined && !this.req.complete) {
      setImmediate(() => this.req.abandon());
    }
  }
}
