import type { ServerHttp2Session, ServerHttp2Stream, Settings } from "node:http2";
import type { Socket } from "node:net";
import { randomBytes } from "node:crypto";
import { checkInterval } from "../listener/client-timeouts.ts";
import type { ListenChanges, ListenOptions } from "../listener/listen-options.ts";
import type { BufferHolder } from "../../core/request/transfer.ts";
import { GateError } from "../../core/request/errors.ts";
import { callEach } from "../../lib/async/isolation.ts";
import { closeSession } from "../../lib/http/http2-ends.ts";
import { cut, refuseUnderWay } from "../request/cut-request.ts";
import { MAX_HEADER_FIELDS, SERVED_METHODS } from "../request/intake.ts";
import { type Http2Head, Http2Request, readHttp2Head } from "./http2-request.ts";
import { Http2Response } from "./http2-response.ts";
import { nodeHttp2 } from "../../lib/http/node-http.ts";
import { multiplexed } from "../request/tracked-response.ts";

const KEY = "sec-websocket-key";

const KEY_BYTES = 16;

/** Whether a request opens a WebSocket on its stream (RFC 8441 §5). */
function opensWebSocket({ isTunnel, protocol }: Http2Head): boolean {
  return isTunnel && protocol?.toLowerCase() === "websocket";
}

/**
 * Returns the same request in the form of HTTP/1.1: a GET that asks for an upgrade. Its key is generated, since HTTP/2 has
 * none; a key that the client sent anyway has no meaning.
 */
function asUpgrade(head: Http2Head): Http2Head {
  const fields = head.fields.filter((_, i, all) => all[i - (i % 2)] !== KEY);
  const key = randomBytes(KEY_BYTES).toString("base64");
  fields.push("connection", "Upgrade", "upgrade", "websocket", KEY, key);
  return { ...head, method: "GET", fields };
}

/** Returns the size of a head as HTTP/1.1 would write it, in bytes. */
function headSize(raw: readonly string[]): number {
  // Two bytes after each name and each value.
  let bytes = 2 * raw.length;
  for (const text of raw) bytes += text.length;
  return bytes;
}

/** What a reload may change. The time limit of a head is that of the first frame of a connection. */
type Http2Settings = Pick<ListenChanges, "http2" | "limits" | "timeouts">;

/** Room for pseudo-header fields and a cookie in many parts (RFC 9113 §8.2.3). Beyond it, nghttp2 resets the stream. */
const MORE_FIELDS = 64;
/** Maximum number of invalid frames, including empty DATA, and of refused streams. Beyond it, the connection ends. */
const MAX_INVALID_FRAMES = 100;
const MAX_REJECTED_STREAMS = 100;
/** Maximum resets by the client: in a burst, and per second. More end the connection (CVE-2023-44487). */
const RESETS = { streamResetBurst: 1_000, streamResetRate: 33 };
/** Backends' heads may be larger than nghttp2's default limit. */
const MAX_RESPONSE_HEAD_BYTES = 1024 * 1024;

/** Starts HTTP/2 on a connection. Node and nghttp2 read and write the frames. */
function startHttp2(socket: Socket, settings: Http2Settings): ServerHttp2Session {
  return nodeHttp2().performServerHandshake(socket, {
    settings: sentSettings(settings),
    maxHeaderListPairs: MAX_HEADER_FIELDS + MORE_FIELDS,
    maxSessionInvalidFrames: MAX_INVALID_FRAMES,
    maxSessionRejectedStreams: MAX_REJECTED_STREAMS,
    maxSendHeaderBlockLength: MAX_RESPONSE_HEAD_BYTES,
    // Answers pass unchanged, even if a backend repeats a field.
    strictSingleValueFields: false,
    ...RESETS,
  });
}

/** Returns the settings that are sent to a client. */
function sentSettings({ limits }: Http2Settings): Settings {
  return {
    maxConcurrentStreams: limits.streams,
    // Twice the limit, so that a head above the limit gets 431 and only larger ones a reset. A field counts as 32 bytes more.
    maxHeaderListSize: 2 * limits.headerBytes + 32 * (MAX_HEADER_FIELDS + MORE_FIELDS),
    enableConnectProtocol: true,
  };
}

/** The HTTP/2 connections of a listener. */
export class Http2Connections {
  readonly #options: Http2ConnectionOptions;
  readonly #open = new Set<Http2Connection>();
  #settings: Http2Settings;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ListenOptions) {
    this.#settings = options;
    this.#options = { ...options, settings: () => this.#settings };
  }

  /** Whether clients may choose HTTP/2. */
  get offered(): boolean {
    return this.#settings.http2;
  }

  /** Starts HTTP/2 on a connection whose sides have agreed on it. */
  accept(socket: Socket): void {
    if (socket.destroyed) return;
    const connection = new Http2Connection(socket, this.#options);
    this.#open.add(connection);
    multiplexed.set(socket, connection);
    this.#options.buffered.track(socket, connection);
    socket.once("close", () => {
      this.#open.delete(connection);
      if (this.#open.size === 0) this.#look();
    });
    if (this.#timer === undefined) this.#look();
  }

  /** Applies new limits to open connections, or closes them if there is to be no HTTP/2. */
  change(settings: Http2Settings): void {
    this.#settings = settings;
    if (!settings.http2) this.close();
    callEach(this.#open, (connection) => connection.change());
  }

  /** Tells all clients to open new connections. Requests that they send until `close` are still served. */
  announceClose(): void {
    callEach(this.#open, (connection) => connection.announceClose());
  }

  /** Closes each connection after its current requests. */
  close(): void {
    callEach(this.#open, (connection) => connection.close());
  }

  /** Ends what takes too long, now and repeatedly while a connection is open. */
  #look(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#open.size === 0) return;
    callEach(this.#open, (connection) => connection.look());
    const { header, request, keepAlive } = this.#settings.timeouts;
    const after = checkInterval(Math.min(header, request, keepAlive));
    this.#timer = setTimeout(() => this.#look(), after).unref();
  }
}

interface Http2ConnectionOptions extends Pick<
  ListenOptions,
  "pipeline" | "buffered" | "reading" | "observer" | "rules"
> {
  readonly settings: () => Http2Settings;
}

/** The largest stream number: announces the end of the connection while requests in transit are still served. */
const LAST_STREAM = 2 ** 31 - 1;
/** Error code of a graceful end (RFC 9113 §7). */
const NO_ERROR = 0;
/**
 * The limits on frames without use, like nginx's: the maximum ratio of all bytes to those of heads and bodies, and the
 * bytes allowed beyond that.
 */
const FRAME_RATIO = 8;
const FREE_BYTES = 1024 * 1024;
/** How long a closing connection waits for the client to read everything, in milliseconds. */
const CLOSING_MS = 1_000;
/**
 * The bytes that are counted for a stream in addition to its head and body. With its exchange and its backend connection
 * it takes 23 KB.
 */
const STREAM_BYTES = 6 * 1024;
/** The number of streams per connection that are not counted, since HTTP/1.1 does not count its one request either. */
const FREE_STREAMS = 1;

/**
 * How long an answer may stand still when its client sends nothing more, in milliseconds. Such a client can open no window, and
 * most have left: after its FIN, Node's HTTP/2 no longer notices that a connection is lost, whatever is written. nginx and Go end
 * its requests at once.
 */
const LEFT_MS = 1_000;

/** The `head` of an upgrade: all data after the request's head is read from the stream. */
const NOTHING = Buffer.alloc(0);

function ignore(): void {}

/** One HTTP/2 connection with its unfinished responses. */
export class Http2Connection implements BufferHolder {
  readonly socket: Socket;
  readonly responses = new Set<Http2Response>();
  readonly #session: ServerHttp2Session;
  readonly #options: Http2ConnectionOptions;
  /** Whether the client has sent its settings, which come first. */
  #begun = false;
  #announced = false;
  /** Whether the client sends nothing more. */
  #ended = false;
  /** Since when no request is in progress, in milliseconds. */
  #idleSince = performance.now();
  /** Bytes of heads and bodies of finished requests. */
  #useful = 0;

  constructor(socket: Socket, options: Http2ConnectionOptions) {
    const { settings, reading } = options;
    this.socket = socket;
    this.#options = options;
    const session = startHttp2(socket, settings());
    this.#session = session;
    socket.once("end", () => {
      this.#ended = true;
      this.#endIncomplete();
    });
    // Invalid frames, or a lost connection: Node reports the error to the client, and closes the connection.
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
    if (this.#isOpen) this.#session.settings(sentSettings(this.#options.settings()));
  }

  /** Tells the client to open a new connection. Requests that it sends until then are still served. */
  announceClose(): void {
    if (this.#announced || !this.#isOpen) return;
    this.#announced = true;
    this.#session.goaway(NO_ERROR, LAST_STREAM);
  }

  /**
   * Whether frames may be sent: Node throws otherwise. It destroys the session of a client that reports an error, and then waits
   * until the client has read everything.
   */
  get #isOpen(): boolean {
    return !this.#session.closed && !this.#session.destroyed;
  }

  /** Reports to the client which streams were processed. */
  sayGoodbye(): void {
    if (!this.#session.destroyed) this.#session.goaway(NO_ERROR);
  }

  /** Accepts no more requests, and closes the connection when the current ones are answered. */
  close(): void {
    if (this.#isOpen) closeSession(this.#session);
  }

  /** Ends requests that exceed a time limit, and the connection if its frames carry almost no data. */
  look(): void {
    const now = performance.now();
    const { timeouts } = this.#options.settings();
    callEach(this.responses, (response) => this.#lookAt(response, now));
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
    if (!this.#isOpen && idle > CLOSING_MS) this.socket.destroySoon();
  }

  #lookAt(response: Http2Response, now: number): void {
    const { settings, observer, rules } = this.#options;
    // The handshake and the WebSocket have their own time limits.
    if (response.req.isTunnel) return;
    const { request, stall } = settings().timeouts;
    const idle = response.transfer?.idleMs;
    const late =
      idle === undefined ? now - response.started > request : response.stalledFor(now) > idle;
    if (late && !response.req.complete) {
      if (refuseUnderWay(response, "request_timeout", rules.current.realm)) {
        observer.requestRefused("request_timeout");
      }
    } else if (response.stalledFor(now) > (this.#ended ? LEFT_MS : stall)) {
      observer.requestRefused("stalled");
      response.blame("stalled");
      response.abort();
    }
  }

  /** Whether the client floods the connection with frames without data: PING, SETTINGS, WINDOW_UPDATE, empty DATA. */
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
    // Node emits an error even if the client has reset the stream in the same read, or sent invalid data after the head.
    stream.on("error", ignore);
    if (stream.closed || stream.destroyed) return;
    this.#begun = true;
    const sent = readHttp2Head(raw);
    const headBytes = headSize(raw);
    const head = opensWebSocket(sent) ? asUpgrade(sent) : sent;
    const request = new Http2Request(stream, this.socket, head, this.#options);
    const response = new Http2Response(stream, request, headBytes, this);
    this.responses.add(response);
    this.#pass(head, request, response);
    if (this.#ended) this.#endIncomplete();
  }

  /**
   * Ends the requests that a client that sends nothing more cannot complete, once all that has arrived is read, and the
   * connection after the other ones. A WebSocket needs both directions.
   */
  #endIncomplete(): void {
    setImmediate(() => {
      callEach(this.responses, (response) => {
        if (response.req.isTunnel || !response.req.complete) response.abort();
      });
      this.close();
    });
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
