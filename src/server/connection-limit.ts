import type { Server, Socket } from "node:net";
import { type Networks, plainAddress } from "../lib/networks.ts";

export interface ConnectionLimit {
  /** The most open connections of one client. */
  readonly perAddress: () => number;
  /** What counts as one client: an address as it is, or the network that it stands for. */
  readonly clientOf: (address: string) => string;
  /** The most open connections of all clients together. */
  readonly together: () => number;
  /** Who is not limited, and not counted: proxies, say, behind which there are many clients. */
  readonly exempt: Networks;
  /** Called for each connection that is closed at once. */
  readonly refused: () => void;
}

/**
 * Has a server close connections beyond so many of one client before anything is done for them: before TLS, which costs
 * more than all the rest. To be called once, when the server has its own listeners.
 */
export function limitConnections(server: Server, limit: ConnectionLimit): void {
  const { perAddress, clientOf, together, exempt, refused } = limit;
  const open = new Map<string, number>();
  let all = 0;
  const accepts = server.listeners("connection");

  function admit(socket: Socket): boolean {
    const peer = plainAddress(socket.remoteAddress ?? "");
    if (exempt.has(peer)) return true;
    const client = clientOf(peer);
    const count = open.get(client) ?? 0;
    if (count >= perAddress() || all >= together()) return false;
    open.set(client, count + 1);
    all += 1;
    socket.once("close", () => {
      all -= 1;
      const left = (open.get(client) ?? 1) - 1;
      if (left === 0) open.delete(client);
      else open.set(client, left);
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
