import type { Server, Socket } from "node:net";
import { type Networks, unmapAddress } from "../../lib/http/networks.ts";
import type { ExceededLimit, ConnectionCounts, ConnectionLimits } from "./connection-counts.ts";
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
  /** Starts an admitted connection, now or later. */
  readonly admit: (socket: Socket, client: string, begin: () => void) => void;
  /** Called for each connection that is closed because of a limit: a new one, or one evicted for a new one. */
  readonly onRefused: (exceeded: ExceededLimit) => void;
}

/**
 * Makes a server close connections beyond its limits before any work is done for them, TLS above all, which costs
 * more than everything else. Call it once, after the server has its own listeners.
 */
export function limitConnections(server: Server, limit: ConnectionLimit): void {
  const { counts, limits, clientOf, exempt, admit, onRefused: refused } = limit;
  const listeners = server.listeners("connection");
  const slots = new ConnectionSlots(server);
  const acquire = (client: string | undefined, name: string): (() => void) | ExceededLimit => {
    const taken = counts.take(client, limits());
    if (taken !== "total" || !slots.evictFor(name)) return taken;
    refused(taken);
    return counts.take(client, limits());
  };
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    const peer = unmapAddress(socket.remoteAddress ?? "");
    const client = exempt.has(peer) ? undefined : clientOf(peer);
    const name = client ?? `${peer} ${socket.remotePort}`;
    const taken = acquire(client, name);
    if (typeof taken === "function") {
      slots.take(name, socket, taken);
      admit(socket, name, () => {
        for (const accept of listeners) Reflect.apply(accept, server, [socket]);
      });
    } else {
      socket.destroy();
      refused(taken);
    }
  });
}
