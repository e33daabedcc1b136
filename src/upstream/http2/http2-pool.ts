import type { ClientHttp2Session, ClientSessionOptions, Settings } from "node:http2";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { TimeoutEntry, TimeoutList } from "../../lib/async/timeout-list.ts";
import type { AnswerHandler, BackendRequest, ConnectionPool } from "../http/connection.ts";
import { connectTo, type Route } from "../http1/connect.ts";
import type { TargetOrigin } from "../pool/target-origin.ts";
import { BackendFault } from "../http/failures.ts";
import { callEach } from "../../lib/async/isolation.ts";
import { BackendStream, MAX_HEADER_BYTES } from "./backend-stream.ts";
import { destroySession } from "../../lib/http/http2-ends.ts";
import { nodeHttp2 } from "../../lib/http/node-http2.ts";

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

type Silences = Readonly<Record<keyof PingTimes, TimeoutList>>;

/** Tracks the silence of all connections of a pool. */
function trackSilences(clock: Clock, times: PingTimes = DEFAULT_TIMES): Silences {
  return {
    quiet: new TimeoutList(times.quiet, clock),
    answer: new TimeoutList(times.answer, clock),
    again: new TimeoutList(times.again, clock),
  };
}

/** Checks by PING whether a connection that is silent while requests wait still works. */
class Liveness extends TimeoutEntry {
  readonly #silences: Silences;
  readonly #ping: (answered: () => void) => void;
  readonly #dead: () => void;

  /** @param ping sends a PING. @param dead called if no acknowledgement arrives in time. */
  constructor(silences: Silences, ping: (answered: () => void) => void, dead: () => void) {
    super();
    this.#silences = silences;
    this.#ping = ping;
    this.#dead = dead;
  }

  /** A request was sent. */
  sent(): void {
    const { quiet, again } = this.#silences;
    if (this.list === undefined || this.list === again) quiet.start(this);
  }

  /** A part of a response has arrived. */
  heard(): void {
    this.#silences.quiet.start(this);
  }

  /** No request is in flight. */
  rest(): void {
    this.list?.cancel(this);
  }

  override onTimeout(limit: TimeoutList): void {
    const { answer, again } = this.#silences;
    if (limit === answer) {
      this.#dead();
      return;
    }
    answer.start(this);
    this.#ping(() => {
      if (this.list === answer) again.start(this);
    });
  }
}

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
function countControlFrames(clock: Clock): () => boolean {
  let count = 0;
  let since = -Infinity;
  return () => {
    const now = clock.monotonic();
    if (now - since > WITHIN_MS) {
      since = now;
      count = 0;
    }
    count += 1;
    return count > MOST;
  };
}

/** The pool to which a connection belongs. */
interface Owner {
  /** More requests can be sent. */
  hasRoom(session: BackendSession): void;
  /** No request is in flight. */
  idle(session: BackendSession): void;
  /** The connection accepts no more requests. @param error why it did not open; undefined if it was open. */
  left(session: BackendSession, error: Error | undefined): void;
}

/** RST_STREAM codes with which the backend reports a fault of ours, or Node a fault of the backend (RFC 9113 §7). */
const BLAMES = new Set([0x1, 0x3, 0x4, 0x5, 0x6, 0x9, 0xb]);

/** Streams have odd numbers below 2^31, each used once (RFC 9113 §5.1.1). */
const MAX_REQUESTS = 2 ** 29;

/** One HTTP/2 connection, which carries as many requests at a time as the backend allows. */
class BackendSession extends TimeoutEntry {
  readonly scheme: string;
  readonly #owner: Owner;
  readonly #socket: Socket;
  readonly #streams = new Set<BackendStream>();
  readonly #liveness: Liveness;
  readonly #hasTooMany: () => boolean;
  #session: ClientHttp2Session | undefined;
  #state: "connecting" | "open" | "leaving" | "closed" = "connecting";
  /** Why the connection broke, once it has. */
  #fault: Error | undefined;
  /** The number of concurrent streams that the backend allows. */
  #allowed = 0;
  #requests = 0;
  /** The last stream that the backend has processed or will process. */
  #lastProcessed = Infinity;

  constructor(route: Route, owner: Owner, silences: Silences, clock: Clock) {
    super();
    this.#owner = owner;
    this.#liveness = new Liveness(
      silences,
      (answered) => void this.#session?.ping(answered),
      () => this.fail(new BackendFault("stream_reset")),
    );
    this.#hasTooMany = countControlFrames(clock);
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
    // Node ends the streams of a session that it has destroyed before it reports why.
    if (this.#state !== "open" || this.#session?.destroyed === true) return 0;
    return this.#allowed - this.#streams.size;
  }

  /** Sends a request. Must only be called if there is room. */
  send(request: BackendRequest, handler: AnswerHandler): void {
    if (this.#session === undefined) throw new TypeError("the connection is not open");
    this.list?.cancel(this);
    const stream = new BackendStream(request, handler, this);
    this.#streams.add(stream);
    this.#liveness.sent();
    stream.open(this.#session);
    if (this.#requests >= MAX_REQUESTS) this.leave();
  }

  get wasUsed(): boolean {
    return this.#requests > 0;
  }

  begun(): void {
    this.#requests += 1;
  }

  heard(): void {
    this.#liveness.heard();
  }

  ended(stream: BackendStream): void {
    if (!this.#streams.delete(stream)) return;
    if (this.#state === "open") this.#owner.hasRoom(this);
    if (this.#streams.size > 0) return;
    this.#liveness.rest();
    if (this.#state === "open") this.#owner.idle(this);
    else if (this.#state === "leaving") this.#close();
  }

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
    this.#owner.left(this, undefined);
    if (this.#streams.size === 0) this.#close();
  }

  /** Called when it was idle for too long. */
  override onTimeout(): void {
    this.leave();
  }

  /** Ends the connection and all requests on it. */
  fail(error: Error): void {
    if (this.#state === "closed") return;
    const before = this.#state;
    this.#fault = error;
    this.#close();
    if (before === "connecting") this.#owner.left(this, error);
    else if (before === "open") this.#owner.left(this, undefined);
  }

  /** Node ends the streams that are still open. */
  #close(): void {
    this.#state = "closed";
    this.list?.cancel(this);
    this.#liveness.rest();
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
    // It would stay open beside a new connection for each request.
    if (this.#allowed === 0) return this.leave();
    if (this.room > 0) this.#owner.hasRoom(this);
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

interface Http2PoolOptions {
  /** The time limit for a connection, in milliseconds. */
  readonly connectMs: number;
  readonly clock?: Clock;
  readonly pings?: PingTimes | undefined;
  /** Receives the requests of connections whose backend selects HTTP/1.1, which is then offered, too. */
  readonly fallback?: Pick<ConnectionPool, "dispatch">;
}

/**
 * The HTTP/2 connections to one target. A request goes to the oldest connection with room for another stream; if
 * there is none, it waits for a new connection. The upstream limits the number of requests.
 */
export class Http2Pool implements ConnectionPool {
  readonly #route: Route;
  readonly #clock: Clock;
  readonly #silences: Silences;
  readonly #idle: TimeoutList;
  readonly #sessions: BackendSession[] = [];
  /** Receives the requests of connections whose backend does not select HTTP/2. */
  readonly #fallback: Pick<ConnectionPool, "dispatch"> | undefined;
  /** Oldest first. */
  #waiting: Waiting[] = [];
  /** Whether a connection has ever been open. */
  hasOpened = false;
  #closed: PromiseWithResolvers<void> | undefined;

  constructor(
    origin: TargetOrigin,
    { connectMs, clock = systemClock, pings, fallback }: Http2PoolOptions,
  ) {
    this.#clock = clock;
    this.#silences = trackSilences(clock, pings);
    const speaks = "h2";
    const protocols =
      fallback === undefined ? ([speaks] as const) : ([speaks, "http/1.1"] as const);
    this.#route = { origin, connectMs, protocols, speaks, session: undefined };
    this.#fallback = fallback;
    this.#idle = new TimeoutList(IDLE_MS, clock);
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
    this.#sessions.push(new BackendSession(this.#route, this, this.#silences, this.#clock));
  }

  hasRoom(session: BackendSession): void {
    this.hasOpened = true;
    while (session.room > 0) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      session.send(next.request, next.handler);
    }
    if (this.#waiting.length > 0) this.#connect();
  }

  idle(session: BackendSession): void {
    if (this.#closed === undefined) this.#idle.start(session);
    else session.leave();
  }

  left(session: BackendSession, error: Error | undefined): void {
    const index = this.#sessions.indexOf(session);
    if (index !== -1) this.#sessions.splice(index, 1);
    const waiting = error === undefined ? [] : this.#waiting;
    if (error !== undefined) this.#waiting = [];
    else if (this.#waiting.length > 0) this.#connect();
    const fallback = error instanceof BackendFault && error.kind === "no_http2" && this.#fallback;
    callEach(waiting, ({ request, handler }) => {
      if (fallback) fallback.dispatch(request, handler);
      else handler.onResponseError(null, error ?? new BackendFault("stream_reset"));
    });
    this.#settle();
  }

  #settle(): void {
    if (this.#sessions.length === 0) this.#closed?.resolve();
  }
}
