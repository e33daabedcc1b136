import type { Server } from "node:net";

/** The port that the system chose for a server listening on TCP. */
export function listeningPort(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") {
    throw new Error("the server does not listen on a port");
  }
  return address.port;
}
