import { isIP } from "node:net";
import { BackendConnection } from "./backend-connection.ts";
import { buildConnector, Pool } from "./undici-parts.ts";

/** How one backend address is reached; times in milliseconds. */
export interface TargetOptions {
  /** `http://host:port`, `https://host:port` or `unix:/path`. */
  readonly address: string;
  readonly tls?: UpstreamTls | undefined;
  /** The most requests under way at once. */
  readonly connections: number;
  readonly timeouts: { readonly connect: number; readonly response: number; readonly idle: number };
}

/** PEM texts, and the name that the backend's certificate must carry when it is not that of the address. */
export interface UpstreamTls {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly serverName?: string | undefined;
}

/** One backend address with its connections. */
export interface Target {
  /** As configured: for logs. */
  readonly address: string;
  readonly pool: Pool;
  readonly connections: number;
  /** Requests under way. */
  inFlight: number;
  readonly origin: TargetOrigin;
}

/** The parts of an address. */
export interface TargetOrigin {
  readonly protocol: "http:" | "https:";
  readonly hostname: string;
  readonly port: number;
  readonly socketPath: string | undefined;
  readonly serverName: string | undefined;
  readonly tls: UpstreamTls | undefined;
}

/** A backend's answer may not have a larger header section than this. */
const MAX_RESPONSE_HEADER_BYTES = 64 * 1024;

/** Opens nothing yet: connections are made on demand. */
export function createTarget(options: TargetOptions): Target {
  const origin = originOf(options.address, options.tls);
  const { hostname, port, socketPath, tls, protocol, serverName } = origin;
  const connector = buildConnector({
    timeout: options.timeouts.connect,
    allowH2: false,
    ...(socketPath === undefined ? {} : { socketPath }),
    ...(tls?.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls?.cert === undefined ? {} : { cert: tls.cert }),
    ...(tls?.key === undefined ? {} : { key: tls.key }),
  });
  const host = isIP(hostname) === 6 ? `[${hostname}]` : hostname;
  const pool = new Pool(`${protocol}//${host}:${port}`, {
    connections: options.connections,
    pipelining: 1,
    maxHeaderSize: MAX_RESPONSE_HEADER_BYTES,
    headersTimeout: options.timeouts.response,
    bodyTimeout: options.timeouts.idle,
    factory: (url, clientOptions) =>
      // undici would take the server name from the request's Host, which the client chooses.
      new BackendConnection(url, clientOptions, (where, connected) =>
        connector(withServerName(where, serverName), connected),
      ),
  });
  return { address: options.address, pool, connections: options.connections, inFlight: 0, origin };
}

function withServerName(
  options: buildConnector.Options,
  serverName: string | undefined,
): buildConnector.Options {
  const { servername: _chosenByClient, ...rest } = options;
  return serverName === undefined ? rest : { ...rest, servername: serverName };
}

/** Takes an address apart; nothing is looked up. @throws TypeError for one that is no address. */
export function originOf(address: string, tls?: UpstreamTls): TargetOrigin {
  if (address.startsWith("unix:")) {
    const socketPath = address.replace(/^unix:(?:\/\/)?/, "");
    const name = tls?.serverName;
    return {
      protocol: "http:",
      hostname: "localhost",
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
  return { protocol, hostname, port, socketPath: undefined, serverName, tls };
}
