import { systemClock } from "../../lib/clock.ts";
import { TimeoutList } from "../../lib/async/timeout-list.ts";
import { rememberedByName } from "../../lib/text/by-name.ts";
import type { AnswerHandler, BackendRequest, ConnectionPool } from "../http/connection.ts";
import type { TargetOrigin } from "../pool/target-origin.ts";
import { BackendFault } from "../http/failures.ts";
import type { Route } from "./connect.ts";
import { type Assignment, Http1Connection } from "./http1-connection.ts";

/** How long a connection stays open for the next request, in milliseconds: Node and many others close after five seconds. */
const IDLE_MS = 4_000;
/** If the backend announces a time (`Keep-Alive: timeout=…`): the margin before it, and the maximum. */
const EARLIER_MS = 2_000;
const LONGEST_MS = 600_000;

/** The keep-alive connections to one target. Each request in flight has its own; the upstream limits their number. */
export class Http1Pool implements ConnectionPool {
  readonly #route: Route;
  /** A stack: the most recently used connection is used next, so that surplus connections time out. */
  readonly #idle: Http1Connection[] = [];
  readonly #open = new Set<Http1Connection>();
  /** By idle time, in milliseconds. */
  readonly #limits = new Map<number, TimeoutList>();
  readonly #fallback: ConnectionPool["dispatch"] | undefined;
  #closed: PromiseWithResolvers<void> | undefined;

  /** @param fallback receives the requests of connections whose backend selects HTTP/2, which is then offered, too. */
  constructor(origin: TargetOrigin, connectMs: number, fallback?: ConnectionPool["dispatch"]) {
    const offersBoth = fallback !== undefined;
    this.#route = { origin, connectMs, offersBoth, speaks: "http/1.1", session: undefined };
    this.#fallback = fallback;
  }

  dispatch(request: BackendRequest, handler: AnswerHandler): void {
    (this.#idle.pop() ?? this.#connect()).dispatch(request, handler);
  }

  /**
   * Called when a connection was lost before its request was written.
   * @param wasUsed whether it had carried earlier requests. If so, another connection may still work.
   */
  unwritten({ request, handler }: Assignment, error: Error, wasUsed: boolean): void {
    const isHttp2 = error instanceof BackendFault && error.kind === "chose_http2";
    if (isHttp2) this.#fallback?.(request, handler);
    else if (wasUsed) this.dispatch(request, handler);
    else handler.onResponseError(error);
  }

  close(): Promise<void> {
    this.#closed ??= Promise.withResolvers();
    for (const connection of [...this.#idle]) connection.close();
    this.#settle();
    return this.#closed.promise;
  }

  #connect(): Http1Connection {
    const connection = new Http1Connection(this.#route, this);
    this.#open.add(connection);
    return connection;
  }

  /** Called when a connection can carry another request. @param hint the value of `Keep-Alive`, or nothing. */
  released(connection: Http1Connection, hint: string): void {
    const ms = idleMs(hint);
    if (ms <= 0 || this.#closed !== undefined) return connection.close();
    let limit = this.#limits.get(ms);
    if (limit === undefined) this.#limits.set(ms, (limit = new TimeoutList(ms, systemClock)));
    this.#idle.push(connection);
    limit.start(connection);
  }

  /** Called when a connection has closed. */
  left(connection: Http1Connection): void {
    this.#open.delete(connection);
    const index = this.#idle.indexOf(connection);
    if (index !== -1) this.#idle.splice(index, 1);
    this.#settle();
  }

  #settle(): void {
    if (this.#open.size === 0) this.#closed?.resolve();
  }
}

/** Returns how long a connection may stay idle for this value of `Keep-Alive`, in milliseconds. */
const idleMs = rememberedByName((hint) => {
  const [, seconds] = /timeout=(\d{1,9})/i.exec(hint) ?? [];
  if (seconds === undefined) return IDLE_MS;
  return Math.min(Number(seconds) * 1_000 - EARLIER_MS, LONGEST_MS);
});
