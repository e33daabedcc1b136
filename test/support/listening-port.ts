import type { Server } from "node:net";

/** Returns the TCP port that the system assigned to a server. */
export function listeningPort(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") {
    throw new Error("the server does not listen on a port");
  }
  return address.port;
}
