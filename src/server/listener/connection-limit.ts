import type { Server, Socket } from "node:net";
import { type Networks, unmapAddress } from "../../lib/http/networks.ts";
import { takeListeners } from "../../lib/node-internals/server-listeners.ts";
import type { ExceededLimit, ConnectionCounts, ConnectionLimits } from "./connection-counts.ts";
import { inheritPeer } from "./proxy-protocol/proxied-peer.ts";
import { readProxyHeader } from "./proxy-protocol/read-proxy-header.ts";
import { ConnectionSlots } from "./connection-slots.ts";

export interface ConnectionLimit {
  /** The counts of open connections. */
  readonly counts: ConnectionCounts;
  /** The current limits. */
  readonly limits: () => ConnectionLimits;
  /** Maps an address to a client: itself, or its network. */
  readonly clientOf: (address: string) => string;
  /**
   * Peers without a limit of their own, such as proxies with many clients behind them. They count towards the total
   * only.
   */
  readonly exempt: Networks;
  /** Reads the header of the PROXY protocol from these peers; undefined if none sends it. */
  readonly proxies?: ProxyProtocol | undefined;
  /** Starts an admitted connection, now or later. */
  readonly admit: (socket: Socket, client: string, begin: () => void) => void;
  /** Called for each connection that is closed because of a limit: a new one, or one evicted for a new one. */
  readonly onRefused: (exceeded: ExceededLimit) => void;
}

interface ProxyProtocol {
  /** The time for a header, in milliseconds. */
  readonly headerMs: () => number;
  /** Called for each connection that is closed because it has no valid header. */
  readonly onRefused: () => void;
}

/**
 * Makes a server close connections beyond its limits before any work is done for them, above all TLS, which costs more
 * than everything else. Must be called once, after the server has its own listeners.
 */
export function limitConnections(server: Server, limit: ConnectionLimit): void {
  const { counts, limits, clientOf, exempt, admit, onRefused: refused } = limit;
  const begin = takeListeners(server, "connection");
  const slots = new ConnectionSlots(server);
  const acquire = (client: string | undefined, name: string): (() => void) | ExceededLimit => {
    const taken = counts.take(client, limits());
    if (taken !== "total" || !slots.evictFor(name)) return taken;
    refused(taken);
    return counts.take(client, limits());
  };
  const accept = (socket: Socket): void => {
    const peer = unmapAddress(socket.remoteAddress ?? "");
    const client = exempt.has(peer) ? undefined : clientOf(peer);
    const name = client ?? `${peer} ${socket.remotePort}`;
    const taken = acquire(client, name);
    if (typeof taken === "function") {
      slots.take(name, socket, taken);
      admit(socket, name, () => begin(socket));
    } else {
      socket.destroy();
      refused(taken);
    }
  };
  server.on("connection", (socket: Socket) => {
    const { proxies } = limit;
    const isProxy = proxies !== undefined && exempt.has(unmapAddress(socket.remoteAddress ?? ""));
    if (isProxy) acceptBehind(socket, proxies, limit, accept);
    else accept(socket);
  });
  if (limit.proxies !== undefined) server.prependListener("secureConnection", inheritPeer);
}

/** Accepts a connection once its proxy has named the client. Until then it counts towards the total only. */
function acceptBehind(
  socket: Socket,
  { headerMs, onRefused }: ProxyProtocol,
  { counts, limits, onRefused: refused }: ConnectionLimit,
  accept: (socket: Socket) => void,
): void {
  const taken = counts.take(undefined, limits());
  if (typeof taken !== "function") {
    socket.destroy();
    refused(taken);
    return;
  }
  readProxyHeader(socket, headerMs(), (accepted) => {
    taken();
    if (!accepted) onRefused();
    else if (!socket.destroyed) accept(socket);
  });
}
