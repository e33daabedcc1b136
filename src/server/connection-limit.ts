import type { Server, Socket } from "node:net";
import { networkOf } from "../lib/client-network.ts";
import { type Networks, plainAddress } from "../lib/networks.ts";

export interface ConnectionLimit {
  /** The most open connections of one address; of one /64 of IPv6. */
  readonly perAddress: () => number;
  /** Proxies, behind which there are many clients: they are not limited. */
  readonly exempt: Networks;
  /** Called for each connection that is closed at once. */
  readonly refused: () => void;
}

/**
 * Has a server close connections beyond so many of one client before anything is done for them: before TLS, which costs
 * more than all the rest. To be called once, when the server has its own listeners.
 */
export function limitConnections(server: Server, limit: ConnectionLimit): void {
  const { perAddress, exempt, refused } = limit;
  const open = new Map<string, number>();
  const accepts = server.listeners("connection");

  function admit(socket: Socket): boolean {
    const peer = plainAddress(socket.remoteAddress ?? "");
    if (exempt.has(peer)) return true;
    const network = networkOf(peer);
    const count = open.get(network) ?? 0;
    if (count >= perAddress()) return false;
    open.set(network, count + 1);
    socket.once("close", () => {
      const left = (open.get(network) ?? 1) - 1;
      if (left === 0) open.delete(network);
      else open.set(network, left);
    });
    return true;
  }

  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    if (admit(socket)) {
      for (const accept of accepts) Reflect.apply(accept, server, [socket]);
    } else {
      socket.destroy();
      refused();
    }
  });
}
