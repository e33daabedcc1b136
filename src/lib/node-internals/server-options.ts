import type { Server, ServerOptions } from "node:http";

/**
 * Changes options of an HTTP server for which Node has no setter. It reads `maxHeaderSize` when it starts to read a
 * connection, and `connectionsCheckingInterval`, in milliseconds, whenever the server emits `listening`.
 */
export function changeOptions(
  server: Server,
  options: Pick<ServerOptions, "connectionsCheckingInterval" | "maxHeaderSize">,
): void {
  Object.assign(server, options);
}
