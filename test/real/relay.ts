import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { listeningPort } from "../support/listening-port.ts";

/** A relay that delays the responses of a server. */
export interface DelayedRelay extends AsyncDisposable {
  readonly port: number;
  /** The delay of each response, in milliseconds. */
  delayMs: number;
  /** How many bytes the server has sent. */
  received: number;
  /** Closes all connections. */
  cut(): void;
}

/** Starts a relay to a port of 127.0.0.1. */
export async function startRelay(target: number): Promise<DelayedRelay> {
  const sockets = new Set<Socket>();
  const relay = {
    port: 0,
    delayMs: 0,
    received: 0,
    cut: () => {
      for (const socket of sockets) socket.destroy();
      sockets.clear();
    },
  };
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy()).on("close", () => to.destroy());
      from.on("data", (chunk: Buffer) => {
        if (from === upstream) relay.received += chunk.length;
        setTimeout(() => to.writable && to.write(chunk), from === upstream ? relay.delayMs : 0);
      });
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  relay.port = listeningPort(server);
  return Object.assign(relay, {
    async [Symbol.asyncDispose](): Promise<void> {
      relay.cut();
      server.close();
      await once(server, "close");
    },
  });
}
