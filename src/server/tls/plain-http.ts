import type { Socket } from "node:net";
import { GateError } from "../../core/request/errors.ts";
import { transportOf } from "../../lib/node-internals/tls-transport.ts";
import { refuseSocket, type SocketRefusal } from "../listener/refuse-socket.ts";

/** The errors of OpenSSL for a first record that looks like an HTTP request, to a server or to a proxy. */
const HTTP_IN_THE_CLEAR = ["ERR_SSL_HTTP_REQUEST", "ERR_SSL_HTTPS_PROXY_REQUEST"];

/**
 * Answers plain HTTP on the TLS port in plain HTTP, as nginx (497) and Go do. Must be called when Node reports the failed
 * handshake, when the TCP connection below is still writable.
 *
 * @returns whether plain HTTP was the cause.
 */
export function refusePlainHttp(
  error: NodeJS.ErrnoException,
  socket: Socket,
  options: SocketRefusal,
): boolean {
  if (!HTTP_IN_THE_CLEAR.includes(error.code ?? "")) return false;
  const below = transportOf(socket);
  if (below?.writable !== true) return false;
  options.observer.requestRefused("plain_http");
  refuseSocket(new GateError("plain_http"), below, options);
  return true;
}
