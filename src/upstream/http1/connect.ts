import { connect as connectTcp, type OnReadOpts, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { BackendTimeout } from "../http/failures.ts";
import { type TargetOrigin, tlsOptionsOf } from "../pool/target-origin.ts";

/** When an idle connection is probed by TCP, in milliseconds. */
const TCP_KEEP_ALIVE_MS = 60_000;

/** Where connections of a pool go. */
export interface Route {
  readonly origin: TargetOrigin;
  /** The time limit for a connection, including TLS, in milliseconds. */
  readonly connectMs: number;
  /** The TLS session of an earlier connection, to be resumed. */
  session: Buffer | undefined;
}

/**
 * Opens a connection to a target.
 *
 * @param onread receives what arrives, in its own buffer.
 * @param connected called once requests can be written.
 * @returns the socket, which emits `error` if it cannot be connected in time.
 */
export function connectTo(route: Route, onread: OnReadOpts, connected: () => void): Socket {
  const { origin, connectMs } = route;
  const { hostname: host, port, socketPath: path, protocol } = origin;
  const where = path === undefined ? { host, port } : { path };
  const options = { ...where, onread, noDelay: true, keepAlive: true };
  const timed = { ...options, keepAliveInitialDelay: TCP_KEEP_ALIVE_MS };
  const socket = protocol === "https:" ? secured(route, timed) : connectTcp(timed);
  const timer = setTimeout(() => {
    socket.destroy(new BackendTimeout("UND_ERR_CONNECT_TIMEOUT"));
  }, connectMs);
  socket.once("close", () => {
    clearTimeout(timer);
  });
  return socket.once(protocol === "https:" ? "secureConnect" : "connect", () => {
    clearTimeout(timer);
    connected();
  });
}

function secured(route: Route, options: object): Socket {
  const { origin, session } = route;
  return connectTls({
    ...options,
    ...tlsOptionsOf(origin),
    ...(session === undefined ? {} : { session }),
    ALPNProtocols: ["http/1.1"],
  }).on("session", (made) => (route.session = made));
}
