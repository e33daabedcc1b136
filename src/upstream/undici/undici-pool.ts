import { isIP, Socket } from "node:net";
import { type TargetOrigin, tlsOptionsOf } from "../pool/target-origin.ts";
import { BackendConnection } from "./backend-connection.ts";
import { buildConnector, Pool } from "./undici-parts.ts";
import { BackendFault } from "../http/faults.ts";

/** The maximum size of a response header section, in bytes. */
const MAX_RESPONSE_HEADER_BYTES = 64 * 1024;

export interface UndiciPoolOptions {
  /** The maximum number of requests in flight. */
  readonly connections: number;
  /** The time limit for a connection, in milliseconds. */
  readonly connectMs: number;
}

/** Creates undici's pool of connections to one origin. */
export function createPool(origin: TargetOrigin, options: UndiciPoolOptions): Pool {
  const { hostname, port, socketPath, protocol, lookup } = origin;
  const connector = buildConnector({
    // undici's timers are up to a second late.
    timeout: 0,
    allowH2: false,
    ...(socketPath === undefined ? {} : { socketPath }),
    ...(lookup === undefined ? {} : { lookup }),
    ...tlsOptionsOf(origin),
  });
  const host = isIP(hostname) === 6 ? `[${hostname}]` : hostname;
  return new Pool(`${protocol}//${host}:${port}`, {
    connections: options.connections,
    pipelining: 1,
    maxHeaderSize: MAX_RESPONSE_HEADER_BYTES,
    // `Exchange` has its own timeouts: those of undici fire up to a second late.
    headersTimeout: 0,
    bodyTimeout: 0,
    factory: (url, clientOptions) =>
      // undici would take the server name from the request's Host, which the client chooses.
      new BackendConnection(url, clientOptions, ({ servername: _, ...where }, connected) =>
        connectWithin(options.connectMs, connector, where, connected),
      ),
  });
}

/** Connects, including TLS, or fails after the time limit. */
function connectWithin(
  ms: number,
  connector: buildConnector.connector,
  where: buildConnector.Options,
  connected: buildConnector.Callback,
): void {
  // undici's types omit that it returns the socket.
  const socket: unknown = connector(where, (...made) => {
    clearTimeout(timer);
    connected(...made);
  });
  const timer = setTimeout(() => {
    if (socket instanceof Socket) socket.destroy(new BackendFault("connect_timeout"));
  }, ms);
}
