import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { listeningPort } from "../support/listening-port.ts";

/** A way to a server that takes longer. */
export interface DelayedRelay extends AsyncDisposable {
  readonly port: number;
  /** How much longer an answer takes, in milliseconds. */
  delayMs: number;
  /** Ends all that is open. */
  cut(): void;
}

/** Passes bytes on, those of the server later. */
export async function startRelay(target: number): Promise<DelayedRelay> {
  const sockets = new Set<Socket>();
  const relay = {
    ...{ port: 0, delayMs: 0 },
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
