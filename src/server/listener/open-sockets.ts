import type { Server } from "node:http";
import type { Socket } from "node:net";

/** Tracks the open sockets of this event; those of `secureConnection` wrap those of `connection`. */
export function trackOpen(
  server: Server,
  event: "connection" | "secureConnection",
): ReadonlySet<Socket> {
  const open = new Set<Socket>();
  server.on(event, (socket: Socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  return open;
}
