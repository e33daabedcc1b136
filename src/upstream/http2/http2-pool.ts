import type { ClientHttp2Session, ClientSessionOptions, Settings } from "node:http2";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { systemClock } from "../../lib/clock.ts";
import { TimeoutEntry, TimeoutList } from "../../lib/async/timeout-list.ts";
import type { AnswerHandler, BackendRequest, ConnectionPool } from "../http/connection.ts";
import { connectTo, type Route } from "../http1/connect.ts";
import type { TargetOrigin } from "../pool/target-origin.ts";
import { BackendFault } from "../http/failures.ts";
import { callEach } from "../../lib/async/isolation.ts";
import { BackendStream, MAX_HEADER_BYTES } from "./backend-stream.ts";
import { destroySession } from "../../lib/http/http2-ends.ts";
import { nodeHttp2 } from "../../lib/http/node-http.ts";

/** Milliseconds. */
export interface PingTimes {
  /** The silence after which a PING checks a connection with requests. */
  readonly quiet: number;
  /** The time limit for the acknowledgement. */
  readonly answer: number;
  /**
   * The silence until the next PING if the connection works: gRPC servers close a connection on which more than one PING
   * arrives in five minutes while they send nothing.
   */
  readonly again: number;
}

const DEFAULT_TIMES: PingTimes = { quiet: 10_000, answer: 5_000, again: 330_000 };

/** The silences of connections with requests, and `idle`, that of those without. */
type Silences = Readonly<Record<keyof PingTimes | "idle", TimeoutList>>;

/** Maximum number of fields in a header section. Several may refer to one long field, so their number bounds the memory. */
const MAX_FIELDS = 500;

/** The bytes of one response that a backend may send before the client reads them. An HTTP/1.1 connection buffers as much. */
const WINDOW_BYTES = 64 * 1024;

/**
 * Maximum memory of a connection, in megabytes. Other bounds apply first: waiting bodies are counted per client, and
 * the window and the size of a header section limit responses.
 */
const MAX_SESSION_MEMORY_MB = 1_000;

/** The options of HTTP/2 sessions with backends. */
const SESSION_OPTIONS = {
  maxSessionMemory: MAX_SESSION_MEMORY_MB,
  maxHeaderListPairs: MAX_FIELDS,
  // A client may repeat a field, and the backend decides what that means.
  strictSingleValueFields: false,
  settings: {
    enablePush: false,
    initialWindowSize: WINDOW_BYTES,
    maxHeaderListSize: MAX_HEADER_BYTES,
  },
} satisfies ClientSessionOptions & { readonly strictSingleValueFields: boolean };

/**
 * Maximum number of frames that belong to no request, within the time below (milliseconds). Node processes and answers
 * each of them.
 */
const MOST = 1_000;
const WITHIN_MS = 10_000;

/** Counts a backend's frames that belong to no request: SETTINGS and PING. @returns a function that counts one, and reports whether there are too many. */
function countControlFrames(): () => boolean {
  let count = 0;
  let since = -Infinity;
  return () => {
    const now = systemClock.monotonic();
    if (now - since > WITHIN_MS) {
      since = now;
      count = 0;
    }
    count += 1;
    return count > MOST;
  };
}

/** RST_STREAM codes with which the backend reports a fault of ours, or Node a fault of the backend (RFC 9113 §7). */
const BLAMES = new Set([0x1, 0x3, 0x4, 0x5, 0x6, 0x9, 0xb]);

/** Streams have odd numbers below 2^31, each used once (RFC 9113 §5.1.1). */
const MAX_REQUESTS = 2 ** 29;

/**
 * One HTTP/2 connection, which carries as many requests at a time as the backend allows. If it is silent while requests wait,
 * a PING checks whether it still works.
 */
export class BackendSession extends TimeoutEntry {
  readonly scheme: string;
  readonly #pool: Http2Pool;
  readonly #silences: Silences;
  readonly #socket: Socket;
  readonly #streams = new Set<BackendStream>();
  readonly #hasTooMany = countControlFrames();
  #session: ClientHttp2Session | undefined;
  #state: "connecting" | "open" | "leaving" | "closed" = "connecting";
  /** Why the connection broke, once it has. */
  #fault: Error | undefined;
  /** The number of concurrent streams that the backend allows. */
  #allowed = 0;
  #requests = 0;
  /** The last stream that the backend has processed or will process. */
  #lastProcessed = Infinity;

  constructor(route: Route, pool: Http2Pool, silences: Silences) {
    super();
    this.#pool = pool;
    this.#silences = silences;
    this.scheme = route.origin.protocol === "https:" ? "https" : "http";
    const timer = setTimeout(() => {
      if (this.#state === "connecting") this.fail(new BackendFault("connect_timeout"));
    }, route.connectMs);
    this.#socket = connectTo(route, undefined, () => this.#onConnect())
      .on("error", (error) => this.fail(error))
      .on("close", () => {
        clearTimeout(timer);
        this.fail(new BackendFault("stream_reset"));
      });
  }

  get isConnecting(): boolean {
    return this.#state === "connecting";
  }

  /** How many more requests can be sent now. */
  get room(): number {
    return this.#state === "open" ? this.#allowed - this.#streams.size : 0;
  }

  /** Sends a request. Must only be called if there is room. */
  send(request: BackendRequest, handler: AnswerHandler): void {
    if (this.#session === undefined) throw new TypeError("the connection is not open");
    const stream = new BackendStream(request, handler, this);
    this.#streams.add(stream);
    const { quiet, answer } = this.#silences;
    if (this.list !== quiet && this.list !== answer) quiet.start(this);
    stream.open(this.#session);
    if (this.#requests >= MAX_REQUESTS) this.leave();
  }

  /** Whether it has carried requests before. */
  get wasUsed(): boolean {
    return this.#requests > 0;
  }

  /** A request is sent. */
  begun(): void {
    this.#requests += 1;
  }

  /** A part of a response has arrived. */
  heard(): void {
    this.#silences.quiet.start(this);
  }

  /** A stream has ended, and another may open. */
  ended(stream: BackendStream): void {
    if (!this.#streams.delete(stream)) return;
    if (this.#state === "open") this.#pool.hasRoom(this);
    if (this.#streams.size > 0) return;
    this.list?.cancel(this);
    if (this.#state === "open") this.#pool.idle(this);
    else if (this.#state === "leaving") this.#close();
  }

  /** Why a stream was closed. @param id of the stream. @param code of its RST_STREAM. @param answered whether its answer had begun. */
  faultOf(id: number, code: number, answered: boolean): Error {
    const { constants } = nodeHttp2();
    if (!answered && id > this.#lastProcessed) return new BackendFault("unprocessed");
    if (!answered && code === constants.NGHTTP2_REFUSED_STREAM) return new BackendFault("refused");
    if (this.#fault !== undefined) return this.#fault;
    return BLAMES.has(code)
      ? new BackendFault("invalid_http2", `code ${code}`)
      : new BackendFault("stream_reset");
  }

  /** Accepts no more requests, and closes after those in flight. */
  leave(): void {
    if (this.#state === "connecting") return this.fail(new BackendFault("stream_reset"));
    if (this.#state !== "open") return;
    this.#state = "leaving";
    this.#pool.left(this, undefined);
    if (this.#streams.size === 0) this.#close();
  }

  override onTimeout(limit: TimeoutList): void {
    const { idle, answer, again } = this.#silences;
    if (limit === idle) return this.leave();
    if (limit === answer) return this.fail(new BackendFault("stream_reset"));
    answer.start(this);
    this.#session?.ping(() => {
      if (this.list === answer) again.start(this);
    });
  }

  /** Ends the connection and all requests on it. */
  fail(error: Error): void {
    if (this.#state === "closed") return;
    const before = this.#state;
    this.#fault = error;
    this.#close();
    if (before === "connecting") this.#pool.left(this, error);
    else if (before === "open") this.#pool.left(this, undefined);
  }

  /** Node ends the streams that are still open. */
  #close(): void {
    this.#state = "closed";
    this.list?.cancel(this);
    destroySession(this.#session, this.#socket);
  }

  #onConnect(): void {
    const socket = this.#socket;
    if (socket instanceof TLSSocket && socket.alpnProtocol !== "h2") {
      this.fail(new BackendFault("no_http2"));
      return;
    }
    const session = nodeHttp2().connect(`${this.scheme}://backend.invalid`, {
      ...SESSION_OPTIONS,
      createConnection: () => socket,
    });
    this.#session = session;
    session.on("remoteSettings", (settings) => this.#onSettings(settings));
    session.on("ping", () => this.#onControl());
    session.on("goaway", (_code, lastStreamId) => {
      this.#lastProcessed = lastStreamId;
      this.leave();
    });
    session.on("error", (error) => this.fail(error));
    session.on("close", () => this.fail(new BackendFault("stream_reset")));
  }

  #onControl(): void {
    if (this.#hasTooMany())
      this.fail(new BackendFault("invalid_http2", "too many frames about no request"));
  }

  #onSettings({ maxConcurrentStreams = Infinity }: Settings): void {
    this.#onControl();
    this.#allowed = maxConcurrentStreams;
    if (this.#state === "connecting") {
      if (this.#allowed === 0)
        return this.fail(new BackendFault("invalid_http2", "no stream is allowed"));
      this.#state = "open";
    }
    if (this.room > 0) this.#pool.hasRoom(this);
  }
}

/**
 * How long a connection without requests stays open, in milliseconds. A backend that closes it earlier reports what it
 * has processed, so no request is lost.
 */
const IDLE_MS = 60_000;

interface Waiting {
  readonly request: BackendRequest;
  readonly handler: AnswerHandler;
}

/**
 * The HTTP/2 connections to one target. A request goes to the oldest connection with room for another stream; if
 * there is none, it waits for a new connection. The upstream limits the number of requests.
 */
export class Http2Pool implements ConnectionPool {
  readonly #route: Route;
  readonly #silences: Silences;
  readonly #sessions: BackendSession[] = [];
  readonly #fallback: ConnectionPool["dispatch"] | undefined;
  /** Oldest first. */
  #waiting: Waiting[] = [];
  /** Whether a connection has ever been open. */
  hasOpened = false;
  #closed: PromiseWithResolvers<void> | undefined;

  /**
   * @param connectMs the time limit for a connection.
   * @param fallback receives the requests of connections whose backend selects HTTP/1.1, which is then offered, too.
   */
  constructor(
    origin: TargetOrigin,
    connectMs: number,
    fallback?: ConnectionPool["dispatch"],
    { quiet, answer, again } = DEFAULT_TIMES,
  ) {
    const offersBoth = fallback !== undefined;
    this.#route = { origin, connectMs, offersBoth, speaks: "h2", session: undefined };
    this.#fallback = fallback;
    this.#silences = {
      quiet: new TimeoutList(quiet, systemClock),
      answer: new TimeoutList(answer, systemClock),
      again: new TimeoutList(again, systemClock),
      idle: new TimeoutList(IDLE_MS, systemClock),
    };
  }

  dispatch(request: BackendRequest, handler: AnswerHandler): void {
    const session = this.#sessions.find(({ room }) => room > 0);
    if (session !== undefined) return session.send(request, handler);
    this.#waiting.push({ request, handler });
    this.#connect();
  }

  withdraw(handler: AnswerHandler): void {
    this.#waiting = this.#waiting.filter((each) => each.handler !== handler);
  }

  close(): Promise<void> {
    this.#closed ??= Promise.withResolvers();
    for (const session of [...this.#sessions]) session.leave();
    this.#settle();
    return this.#closed.promise;
  }

  #connect(): void {
    if (this.#sessions.some(({ isConnecting }) => isConnecting)) return;
    this.#sessions.push(new BackendSession(this.#route, this, this.#silences));
  }

  /** A connection can carry more requests. */
  hasRoom(session: BackendSession): void {
    this.hasOpened = true;
    while (session.room > 0) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      session.send(next.request, next.handler);
    }
    if (this.#waiting.length > 0) this.#connect();
  }

  /** A connection has no request in flight. */
  idle(session: BackendSession): void {
    if (this.#closed === undefined) this.#silences.idle.start(session);
    else session.leave();
  }

  /** A connection accepts no more requests. @param error why it did not open; undefined if it was open. */
  left(session: BackendSession, error: Error | undefined): void {
    const index = this.#sessions.indexOf(session);
    if (index !== -1) this.#sessions.splice(index, 1);
    const waiting = error === undefined ? [] : this.#waiting;
    if (error !== undefined) this.#waiting = [];
    else if (this.#waiting.length > 0) this.#connect();
    const fallback = error instanceof BackendFault && error.kind === "no_http2" && this.#fallback;
    callEach(waiting, ({ request, handler }) => {
      if (fallback) fallback(request, handler);
      else handler.onResponseError(error ?? new BackendFault("stream_reset"));
    });
    this.#settle();
  }

  #settle(): void {
    if (this.#sessions.length === 0) this.#closed?.resolve();
  }
}
