import type { Server, Socket } from "node:net";

/**
 * Takes the listeners of an event away from a server, those of Node included, which start to read a connection. Node has
 * no public way to delay or skip that.
 *
 * @returns a function that passes a connection on to them.
 */
export function takeListeners(
  server: Server,
  event: "connection" | "secureConnection",
): (socket: Socket) => void {
  const listeners = server.listeners(event);
  server.removeAllListeners(event);
  return (socket) => {
    for (const each of listeners) Reflect.apply(each, server, [socket]);
  };
}
