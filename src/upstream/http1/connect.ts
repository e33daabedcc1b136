import { connect as connectTcp, type OnReadOpts, type Socket } from "node:net";
import { connect as connectTls, TLSSocket } from "node:tls";
import { type TargetOrigin, tlsOptionsOf } from "../pool/target-origin.ts";
import { BackendFault } from "../http/failures.ts";

/** The idle time after which TCP keep-alive probes a connection, in milliseconds. */
const TCP_KEEP_ALIVE_MS = 60_000;

/** The destination of the connections of a pool. */
export interface Route {
  readonly origin: TargetOrigin;
  /** What the connections can carry. */
  readonly speaks: "h2" | "http/1.1";
  /** Whether TLS offers the other protocol, too (ALPN). */
  readonly offersBoth: boolean;
  /** The time limit for a connection, including TLS, in milliseconds. */
  readonly connectMs: number;
  /** The TLS session of an earlier connection, to be resumed. */
  session: Buffer | undefined;
}

/**
 * Opens a connection to a target.
 *
 * @param onread receives what arrives, in its own buffer; undefined for a plain stream.
 * @param connected called once requests can be written.
 * @returns the socket, which emits `error` if it cannot be connected in time.
 */
export function connectTo(
  route: Route,
  onread: OnReadOpts | undefined,
  connected: () => void,
): Socket {
  const { origin, connectMs, speaks } = route;
  const { hostname: host, port, socketPath: path, protocol, lookup } = origin;
  const options = {
    ...(path === undefined ? { host, port, lookup } : { path }),
    onread,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
  };
  const socket = protocol === "https:" ? secured(route, options) : connectTcp(options);
  const timer = setTimeout(() => {
    socket.destroy(new BackendFault("connect_timeout"));
  }, connectMs);
  socket.once("close", () => {
    clearTimeout(timer);
  });
  return socket.once(protocol === "https:" ? "secureConnect" : "connect", () => {
    clearTimeout(timer);
    const isOther = socket instanceof TLSSocket && socket.alpnProtocol === "h2" && speaks !== "h2";
    if (isOther) socket.destroy(new BackendFault("chose_http2"));
    else connected();
  });
}

function secured(route: Route, options: object): Socket {
  const { origin, session, speaks, offersBoth } = route;
  return connectTls({
    ...options,
    ...tlsOptionsOf(origin),
    session,
    ALPNProtocols: offersBoth ? ["h2", "http/1.1"] : [speaks],
  }).on("session", (made) => (route.session = made));
}
