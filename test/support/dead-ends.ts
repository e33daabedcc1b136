import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { listeningPort } from "./listening-port.ts";

/**
 * A port of 127.0.0.1 on which nobody listens, nor will as long as this process lives: it is the near end of a connection
 * that stays, so the system gives it to nobody else.
 */
export async function closedPort(): Promise<number> {
  const server = createServer((socket) => void socket.unref()).unref();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect(listeningPort(server), "127.0.0.1").unref();
  await once(socket, "connect");
  return socket.localPort ?? 0;
}

/** A port of 127.0.0.1 for a program that cannot choose one: the system gave it just now, and it was given back. */
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

/** Takes connections, reads nothing and says nothing. */
export async function startSilentServer(): Promise<SilentServer> {
  const sockets = new Set<Socket>();
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
  }).listen(0, "127.0.0.1");
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
