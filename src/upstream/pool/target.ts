import type { ConnectionPool } from "../http/connection.ts";
import { createPool } from "../http/undici-pool.ts";
import { Http1Pool } from "../http1/http1-pool.ts";
import { hasNodeParser } from "../http1/response-parser.ts";
import { originOf, type TargetOrigin, type UpstreamTls } from "./target-origin.ts";

/** How to reach one backend address. Times are in milliseconds. */
export interface TargetOptions {
  /** `http://host:port`, `https://host:port` or `unix:/path`. */
  readonly address: string;
  readonly tls?: UpstreamTls | undefined;
  /** The maximum number of requests in flight. */
  readonly connections: number;
  /** The time limit for a connection. */
  readonly connectMs: number;
}

/** One backend address with its connections. */
export interface Target {
  /** As configured, for logs. */
  readonly address: string;
  readonly pool: ConnectionPool;
  readonly connections: number;
  /** Requests in flight. */
  inFlight: number;
  readonly origin: TargetOrigin;
}

/** Creates a target. Connections open on demand. */
export function createTarget(options: TargetOptions): Target {
  const { address, tls, connections } = options;
  const origin = originOf(address, tls);
  return { address, pool: openPool(origin, options), connections, inFlight: 0, origin };
}

/** Creates the pool of connections to one origin: undici's where this Node's parser is not the one that is known. */
function openPool(
  origin: TargetOrigin,
  options: Pick<TargetOptions, "connections" | "connectMs">,
): ConnectionPool {
  return hasNodeParser() ? new Http1Pool(origin, options.connectMs) : createPool(origin, options);
}
