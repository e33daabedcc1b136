import { type Clock, systemClock } from "../../lib/clock.ts";
import { TimeoutList } from "../../lib/async/timeout-list.ts";
import type { AnswerHandler, BackendRequest, ConnectionPool } from "../http/connection.ts";
import type { Route } from "../http1/connect.ts";
import type { TargetOrigin } from "../pool/target-origin.ts";
import { BackendSession } from "./backend-session.ts";
import { type PingTimes, Silences } from "./liveness.ts";
import { BackendFault } from "../http/failures.ts";
import { callEach } from "../../lib/async/isolation.ts";

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
    this.#silences = new Silences(clock, pings);
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
