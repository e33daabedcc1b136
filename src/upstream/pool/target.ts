import { isIP, Socket } from "node:net";
import type { ConnectionOptions } from "node:tls";
import { BackendConnection } from "../http/backend-connection.ts";
import type { ConnectionPool } from "../http/connection.ts";
import { BackendTimeout } from "../http/failures.ts";
import { buildConnector, Pool } from "../http/undici-parts.ts";

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

/** PEM texts, and the name that the backend's certificate must have if it is not the address. */
export interface UpstreamTls {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly serverName?: string | undefined;
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

/** The parsed parts of an address. */
export interface TargetOrigin {
  readonly protocol: "http:" | "https:";
  readonly hostname: string;
  /** The value of `Host` that names it. */
  readonly authority: string;
  readonly port: number;
  readonly socketPath: string | undefined;
  readonly serverName: string | undefined;
  readonly tls: UpstreamTls | undefined;
}

type TargetTlsOptions = Pick<ConnectionOptions, "servername" | "ca" | "cert" | "key">;

/** The maximum size of a response header section, in bytes. */
const MAX_RESPONSE_HEADER_BYTES = 64 * 1024;

/** Creates a target. Connections open on demand. */
export function createTarget(options: TargetOptions): Target {
  const { address, tls, connections } = options;
  const origin = originOf(address, tls);
  return { address, pool: createPool(origin, options), connections, inFlight: 0, origin };
}

/** Creates undici's pool of connections to one origin. */
export function createPool(
  origin: TargetOrigin,
  options: Pick<TargetOptions, "connections" | "connectMs">,
): Pool {
  const { hostname, port, socketPath, protocol } = origin;
  const connector = buildConnector({
    // undici's timers are up to a second late.
    timeout: 0,
    allowH2: false,
    ...(socketPath === undefined ? {} : { socketPath }),
    ...tlsOptionsOf(origin),
  });
  const host = isIP(hostname) === 6 ? `[${hostname}]` : hostname;
  return new Pool(`${protocol}//${host}:${port}`, {
    connections: options.connections,
    pipelining: 1,
    maxHeaderSize: MAX_RESPONSE_HEADER_BYTES,
    // See `AnswerTime`.
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
    if (socket instanceof Socket) socket.destroy(new BackendTimeout("UND_ERR_CONNECT_TIMEOUT"));
  }, ms);
}

/**
 * Returns the options of `tls.connect` for a target. Always sets `servername`: Node and undici would otherwise take
 * it from the request's Host, which the client chooses, and verify the certificate against that. If empty, no name is
 * sent, and the certificate is verified against the address.
 */
export function tlsOptionsOf({ tls, serverName = "" }: TargetOrigin): TargetTlsOptions {
  return {
    servername: serverName,
    ...(tls?.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls?.cert === undefined ? {} : { cert: tls.cert }),
    ...(tls?.key === undefined ? {} : { key: tls.key }),
  };
}

/**
 * Parses an address without resolving it.
 *
 * @throws TypeError if it is malformed.
 */
export function originOf(address: string, tls?: UpstreamTls): TargetOrigin {
  if (address.startsWith("unix:")) {
    const socketPath = address.replace(/^unix:(?:\/\/)?/, "");
    const name = tls?.serverName;
    return {
      protocol: "http:",
      hostname: "localhost",
      authority: "localhost",
      port: 80,
      socketPath,
      serverName: name,
      tls,
    };
  }
  const url = new URL(address);
  const protocol = url.protocol === "https:" ? "https:" : "http:";
  const hostname = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const port = url.port === "" ? (protocol === "https:" ? 443 : 80) : Number(url.port);
  const serverName = tls?.serverName ?? (isIP(hostname) === 0 ? hostname : undefined);
  const authority = url.host;
  return { protocol, hostname, authority, port, socketPath: undefined, serverName, tls };
}
