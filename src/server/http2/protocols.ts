import type { Server } from "node:http";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { takeListeners } from "../../lib/node-internals/server-listeners.ts";

/**
 * Chooses the protocol of a TLS connection: HTTP/2 if both sides speak it.
 *
 * @param offered the protocols that the client offers (ALPN, RFC 7301).
 * @returns undefined if no protocol is shared; the handshake then fails.
 */
export function chooseProtocol(offered: readonly string[], http2: boolean): string | undefined {
  if (http2 && offered.includes("h2")) return "h2";
  return offered.includes("http/1.1") ? "http/1.1" : undefined;
}

/** Whether a TLS connection has agreed on HTTP/2. */
export function isHttp2(socket: Socket): boolean {
  return socket instanceof TLSSocket && socket.alpnProtocol === "h2";
}

/** Hides HTTP/2 connections from Node's own listener, which reads HTTP/1.1. Must be called before others listen. */
export function divertHttp2(server: Server): void {
  const acceptHttp1 = takeListeners(server, "secureConnection");
  server.on("secureConnection", (socket: TLSSocket) => {
    if (!isHttp2(socket)) acceptHttp1(socket);
  });
}
