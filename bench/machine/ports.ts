import { connect, createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Child } from "./children.ts";

/** Returns a free port on loopback, for programs that cannot choose one themselves. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject).listen(0, "127.0.0.1", resolve);
  await promise;
  const address = server.address();
  const closed = Promise.withResolvers<void>();
  server.close(() => closed.resolve());
  await closed.promise;
  if (address === null || typeof address === "string") throw new Error("no TCP port");
  return address.port;
}

/** Resolves with the port when the child accepts connections on it. Rejects if it ends before, or after ten seconds. */
export async function accepting(port: number, child: Child): Promise<{ readonly port: number }> {
  let ended = false;
  void child.ended.then(() => (ended = true));
  const deadline = performance.now() + 10_000;
  while (!(await connects(port))) {
    // Rejects with the program's error output.
    if (ended || performance.now() > deadline) await child.read(() => undefined, 1);
    await delay(20);
  }
  return { port };
}

async function connects(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(port, "127.0.0.1");
  socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
  const connected = await promise;
  socket.destroy();
  return connected;
}
