import type { ConnectionPool } from "../http/connection.ts";
import { Http1Pool } from "../http1/http1-pool.ts";
import { Http2Pool } from "../http2/http2-pool.ts";
import { AlpnPool, type OpenHttp1 } from "./alpn-pool.ts";
import type { TargetOrigin } from "./target-origin.ts";

/** The protocols of targets: HTTP/2 over TLS (ALPN) or by prior knowledge (`h2c`), or whatever TLS negotiates. */
export type UpstreamProtocol = "http1" | "http2" | "h2c" | "auto";

interface PoolOptions {
  readonly protocol?: UpstreamProtocol | undefined;
  /** The time limit for a connection, in milliseconds. */
  readonly connectMs: number;
}

/** Creates the pool of connections to one origin. */
export function openPool(origin: TargetOrigin, options: PoolOptions): ConnectionPool {
  const { protocol = "http1", connectMs } = options;
  const openHttp1 = (fallback?: Parameters<OpenHttp1>[0]): ConnectionPool =>
    new Http1Pool(origin, connectMs, undefined, fallback);
  if (protocol === "http1") return openHttp1();
  if (protocol === "auto") return new AlpnPool(origin, connectMs, openHttp1);
  return new Http2Pool(origin, { connectMs });
}
