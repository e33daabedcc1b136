import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { listeningPort } from "./listening-port.ts";

/**
 * Returns a port of 127.0.0.1 where nothing listens as long as this process lives: it is the local port of an open
 * connection, so the system does not assign it again.
 */
export async function closedPort(): Promise<number> {
  const server = createServer((socket) => void socket.unref()).unref();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect(listeningPort(server), "127.0.0.1").unref();
  await once(socket, "connect");
  return socket.localPort ?? 0;
}

/** Returns a port of 127.0.0.1 that was free a moment ago, for a program that cannot choose one itself. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const port = listeningPort(server);
  server.close();
  await once(server, "close");
  return port;
}

export interface SilentServer extends AsyncDisposable {
  readonly port: number;
}

/** Starts a server that accepts connections, but reads and writes nothing. @param port by default one of the system's choice. */
export async function startSilentServer(port = 0): Promise<SilentServer> {
  const sockets = new Set<Socket>();
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
  }).listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    port: listeningPort(server),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
