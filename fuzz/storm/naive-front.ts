import { connect, createServer, type Socket } from "node:net";
import { listening } from "../../test/support/listening.ts";
import type { Front, Targets } from "./front.ts";

/**
 * A proxy in which a storm must find faults of each kind: it knows only HTTP/1.1, copies bytes, forgets revocations, keeps the
 * connection to the backend when its client leaves, and complains about fields that HTTP/2 forbids.
 */
export async function startNaiveFront(targets: Targets): Promise<Front> {
  const sockets = new Set<Socket>();
  const troubles: string[] = [];
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => socket.destroy());
  };
  let kept = 0;
  const server = createServer((client) => {
    keep(client);
    client.once("data", (first: Buffer) => {
      const path = / (\/\S+) HTTP/.exec(first.toString("latin1"))?.[1];
      if (path === undefined) return void client.destroy();
      const { port } = new URL(targetOf(targets, path));
      const backend = connect({ host: "127.0.0.1", port: Number(port) });
      keep(backend);
      kept += 1;
      backend.once("close", () => (kept -= 1));
      backend.write(first);
      client.pipe(backend, { end: false });
      backend.on("data", (bytes: Buffer) => {
        if (bytes.includes("http2-settings")) troubles.push("a field that HTTP/2 forbids");
        if (client.writable) client.write(bytes);
      });
      backend.on("end", () => client.end());
    });
  });
  const standing = await listening(server);
  return {
    port: standing.port,
    ca: undefined,
    token: (jti) => jti,
    revoke: () => Promise.resolve(true),
    reload: () => Promise.resolve(),
    exited: () => false,
    troubles: () => troubles.splice(0),
    left: () => Promise.resolve(kept === 0 ? [] : [`connections to backends ${kept}`]),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await standing[Symbol.asyncDispose]();
    },
  };
}

/** Returns the target of a path, over HTTP/1.1. */
function targetOf(targets: Targets, path: string): string {
  if (path.startsWith("/innocent-")) return targets["innocent-http1"];
  if (path.startsWith("/busy-")) return targets["busy-http1"];
  return targets[path.startsWith("/token/reading-") ? "reading-http1" : "http1"];
}
