import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
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

/** Commands and their replies. Texts hold line ends, types of replies, and letters of several bytes. */
const REPLIES: readonly (readonly [reply: string, value: unknown])[] = [
  ["+OK\r\n", "OK"],
  [":-42\r\n", -42],
  ["$-1\r\n", null],
  ["*-1\r\n", null],
  ["*0\r\n", []],
  ["$0\r\n\r\n", ""],
  ["$12\r\n\r\n*1\r\n$é€\r\n", "\r\n*1\r\n$é€"],
  ["*3\r\n*2\r\n:1\r\n*1\r\n*0\r\n$1\r\na\r\n*-1\r\n", [[1, [[]]], "a", null]],
];

it.each([1, 2, 3, 7, 1_000])("reads replies in pieces of %i bytes", async (size) => {
  const { promise, resolve } = Promise.withResolvers<Socket>();
  await using server = await listening(createServer(resolve));
  const { connection, socket } = await opened(server.port, promise);
  socket.setNoDelay(true).resume();
  const asked = REPLIES.map(() => connection.call("GET", "a"));
  const bytes = Buffer.from(REPLIES.map(([reply]) => reply).join(""));
  for (let at = 0; at < bytes.length; at += size) {
    socket.write(bytes.subarray(at, at + size));
    await nextTurn();
  }
  expect(await Promise.all(asked)).toEqual(REPLIES.map(([, value]) => value));
  connection.close();
});

it("a connection that is cut in any reply fails, and leaves nothing open", async () => {
  const reply = "*2\r\n$5\r\nfirst\r\n*1\r\n:7\r\n";
  for (let length = 0; length < reply.length; length += 1) {
    const { promise, resolve } = Promise.withResolvers<Socket>();
    await using server = await listening(createServer(resolve));
    const { connection, socket } = await opened(server.port, promise);
    const closed = Promise.withResolvers<void>();
    connection.onClose(closed.resolve);
    socket.once("data", () => socket.end(reply.slice(0, length)));
    await expect(connection.call("GET", "a")).rejects.toThrow("the connection was closed");
    await closed.promise;
  }
});
