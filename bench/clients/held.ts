/**
 * Opens connections over TLS, each with one answered request (or WebSocket handshake), and holds them until the process is
 * killed. Takes the options as JSON in the first argument, and prints "holding" and the number of connections when all are
 * open.
 */
import { randomBytes } from "node:crypto";
import { connect, type TLSSocket } from "node:tls";
import type { Held } from "../load/held.ts";

const held: Held = JSON.parse(process.argv[2] ?? "{}");
const { port, ca, count, token, webSocket } = held;
const AT_ONCE = 32;
const sockets: TLSSocket[] = [];

function head(): string {
  const key = randomBytes(16).toString("base64");
  const upgrade = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n`;
  return `GET /orders/4711 HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n${webSocket ? upgrade : ""}\r\n`;
}

/** Resolves when the answer has arrived, which is small and comes in one piece. */
async function openOne(): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect({ port, host: "127.0.0.1", ca }, () => socket.write(head()));
  sockets.push(socket);
  socket.setEncoding("latin1").once("data", resolve).once("error", reject);
  socket.once("close", () => reject(new Error("a connection was closed")));
  const status = (await promise).split(" ")[1];
  if (status !== (webSocket ? "101" : "200")) throw new Error(`the answer was ${status}`);
  socket.on("error", (error) => fail(error)).on("close", () => fail(new Error("closed too early")));
  socket.resume();
}

function fail(error: Error): void {
  console.error(error.message);
  process.exit(1);
}

let left = count;
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    while (left-- > 0) await openOne();
  }),
);
console.log(`holding ${sockets.length}`);
