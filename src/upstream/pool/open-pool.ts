import type { AnswerHandler, BackendRequest, ConnectionPool } from "../http/connection.ts";
import { Http1Pool } from "../http1/http1-pool.ts";
import { Http2Pool } from "../http2/http2-pool.ts";
import type { TargetOrigin } from "./target-origin.ts";
import type { UpstreamOptions } from "./upstreams.ts";
import { BackendFault } from "../http/failures.ts";

/** Creates the HTTP/1.1 pool. @param fallback receives the requests of connections whose backend has selected HTTP/2. */
type OpenHttp1 = (fallback: Pick<ConnectionPool, "dispatch">) => ConnectionPool;

/** How often a request may move to the other protocol: with a backend that alternates, it would otherwise move forever. */
const MAX_TURNS = 3;

/**
 * The connections to a target whose protocol TLS negotiates (ALPN, RFC 7301). Each connection offers both; if a
 * backend selects the other protocol on one of them, all following requests move there. No request was sent on that
 * connection, so none is sent twice.
 */
class AlpnPool implements ConnectionPool {
  readonly #openHttp1: () => ConnectionPool;
  readonly #openHttp2: () => Http2Pool;
  readonly #turns = new WeakMap<AnswerHandler, number>();
  /** Earlier pools with requests in flight. */
  readonly #leaving = new Set<Promise<void>>();
  #pool: ConnectionPool;

  constructor(origin: TargetOrigin, connectMs: number, openHttp1: OpenHttp1) {
    this.#openHttp1 = () => {
      const pool = openHttp1({
        dispatch: (request, handler) => this.#turn(pool, "http2", request, handler),
      });
      return pool;
    };
    this.#openHttp2 = () => {
      const pool = new Http2Pool(origin, {
        connectMs,
        fallback: {
          dispatch: (request, handler) => this.#turn(pool, "http1", request, handler),
        },
      });
      return pool;
    };
    this.#pool = this.#openHttp2();
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
  #turn(
    from: ConnectionPool,
    protocol: "http1" | "http2",
    request: BackendRequest,
    handler: AnswerHandler,
  ): void {
    if (this.#pool === from) {
      this.#pool = protocol === "http1" ? this.#openHttp1() : this.#openHttp2();
      const closed = from.close().finally(() => this.#leaving.delete(closed));
      this.#leaving.add(closed);
    }
    const turns = (this.#turns.get(handler) ?? 0) + 1;
    this.#turns.set(handler, turns);
    if (turns > MAX_TURNS) handler.onResponseError(null, new BackendFault("no_http2"));
    else this.#pool.dispatch(request, handler);
  }
}

/** Creates the pool of connections to one origin. @param connectMs the time limit for a connection. */
export function openPool(
  origin: TargetOrigin,
  protocol: UpstreamOptions["protocol"],
  connectMs: number,
): ConnectionPool {
  const openHttp1 = (fallback?: Parameters<OpenHttp1>[0]): ConnectionPool =>
    new Http1Pool(origin, connectMs, undefined, fallback);
  if (protocol === "http1") return openHttp1();
  if (protocol === "auto") return new AlpnPool(origin, connectMs, openHttp1);
  return new Http2Pool(origin, { connectMs });
}
