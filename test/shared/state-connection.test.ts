import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { expect, it } from "vitest";
import { StateConnection, StateUnavailable } from "../../src/shared/state-connection.ts";
import { listening } from "../support/listening.ts";

/** Opens a connection. Returns both of its ends. */
async function opened(port: number, accepted: Promise<Socket>) {
  const server = { host: "127.0.0.1", port, tls: false, database: 0 };
  const connection = await StateConnection.open(server, 2_000);
  return { connection, socket: await accepted };
}

it("closes its own socket", async () => {
  const { promise, resolve } = Promise.withResolvers<Socket>();
  await using server = await listening(createServer(resolve));
  const { connection, socket } = await opened(server.port, promise);
  socket.resume();
  const ended = Promise.withResolvers<void>();
  connection.onClose(ended.resolve);
  connection.close();
  await once(socket, "close");
  await ended.promise;
});

it("closes a connection whose response is too large", async () => {
  const { promise, resolve } = Promise.withResolvers<Socket>();
  await using server = await listening(createServer(resolve));
  const { connection, socket } = await opened(server.port, promise);
  const length = 9 * 1024 ** 2;
  socket.on("error", () => undefined);
  socket.once("data", () => void socket.write(`$${length}\r\n${"x".repeat(length)}\r\n`));
  const closed = Promise.withResolvers<void>();
  connection.onClose(closed.resolve);
  await expect(connection.call("GET", "a")).rejects.toThrow(StateUnavailable);
  await closed.promise;
});
