import type { AnswerHandler, BackendRequest, ConnectionPool } from "../http/connection.ts";
import { Http1Pool } from "../http1/http1-pool.ts";
import { Http2Pool } from "../http2/http2-pool.ts";
import type { TargetOrigin } from "./target-origin.ts";
import type { UpstreamOptions } from "./upstreams.ts";
import { BackendFault } from "../http/failures.ts";

/** How often a request may move to the other protocol: with a backend that alternates, it would otherwise move forever. */
const MAX_TURNS = 3;

/**
 * The connections to a target whose protocol TLS negotiates (ALPN, RFC 7301). Each connection offers both; if a
 * backend selects the other protocol on one of them, all following requests move there. No request was sent on that
 * connection, so none is sent twice.
 */
class AlpnPool implements ConnectionPool {
  readonly #origin: TargetOrigin;
  readonly #connectMs: number;
  readonly #turns = new WeakMap<AnswerHandler, number>();
  /** Earlier pools with requests in flight. */
  readonly #leaving = new Set<Promise<void>>();
  #pool: ConnectionPool;

  constructor(origin: TargetOrigin, connectMs: number) {
    this.#origin = origin;
    this.#connectMs = connectMs;
    this.#pool = this.#open(Http2Pool);
  }

  #open(kind: typeof Http1Pool | typeof Http2Pool): ConnectionPool {
    const pool: ConnectionPool = new kind(this.#origin, this.#connectMs, (request, handler) =>
      this.#turn(pool, request, handler),
    );
    return pool;
  }

  /** The protocol that the backend selected; undefined before a connection is open. */
  get negotiated(): "http1" | "http2" | undefined {
    if (!(this.#pool instanceof Http2Pool)) return "http1";
    return this.#pool.hasOpened ? "http2" : undefined;
  }

  dispatch(request: BackendRequest, handler: AnswerHandler): void {
    this.#pool.dispatch(request, handler);
  }

  withdraw(handler: AnswerHandler): void {
    this.#pool.withdraw?.(handler);
  }

  async close(): Promise<void> {
    await Promise.all([this.#pool.close(), ...this.#leaving]);
  }

  /** Sends this request and all following ones over the other protocol. @param from the pool whose backend has selected it. */
  #turn(from: ConnectionPool, request: BackendRequest, handler: AnswerHandler): void {
    if (this.#pool === from) {
      this.#pool = this.#open(from instanceof Http2Pool ? Http1Pool : Http2Pool);
      const closed = from.close().finally(() => this.#leaving.delete(closed));
      this.#leaving.add(closed);
    }
    const turns = (this.#turns.get(handler) ?? 0) + 1;
    this.#turns.set(handler, turns);
    if (turns > MAX_TURNS) handler.onResponseError(new BackendFault("no_http2"));
    else this.#pool.dispatch(request, handler);
  }
}

/** Creates the pool of connections to one origin. @param connectMs the time limit for a connection. */
export function openPool(
  origin: TargetOrigin,
  protocol: UpstreamOptions["protocol"],
  connectMs: number,
): ConnectionPool {
  if (protocol === "auto") return new AlpnPool(origin, connectMs);
  if (protocol === "http1") return new Http1Pool(origin, connectMs);
  return new Http2Pool(origin, connectMs);
}
