/**
 * WebSockets to a backend that does not read. A client sends frames until nothing more is taken, and its connection ends:
 * because the budget for what waits is used up, say. What it sent still waits for the backend, and a socket that is to end
 * when all is written never ends. Each such connection left 370 KB and a descriptor behind, beyond every limit: with a
 * budget of 32 MiB one client took 445 MiB.
 *
 * Sallyport gives the backend a second to take the rest, none where memory is short, and then drops the connection.
 */
import { createConnection, createServer } from "node:net";
import { once } from "node:events";
import { it, onTestFinished } from "vitest";
import { startSallyport } from "../support/sallyport.ts";
import { listeningPort } from "../support/listening-port.ts";
import { resourcesOf } from "../support/proxy-resources.ts";
import { until } from "../support/until.ts";

const COUNT = 24;
const HANDSHAKE = [
  "GET /public/ws HTTP/1.1",
  "Host: localhost",
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
  "\r\n",
].join("\r\n");
/** For that key (RFC 6455 §4.2.2). */
const SWITCHED =
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
  "Sec-WebSocket-Accept: ICX+Yqv66kxgM0FcWaLWlFLwTAI=\r\n\r\n";
/** A masked binary frame of 16 KiB, its mask all zeros. */
const FRAME = Buffer.concat([
  Buffer.from([0x82, 0xfe, 0x40, 0x00, 0, 0, 0, 0]),
  Buffer.alloc(16_384, "f"),
]);
/** More than both kernels take for a backend that does not read. */
const FRAMES = Buffer.concat(Array.from({ length: 2_000 }, () => FRAME));
/** Looks of ours at the metrics, and the like. */
const KEPT = 4;

it("drops what waits for the backend when a client's connection ends", async () => {
  const backend = createServer((socket) => {
    socket
      .on("error", () => undefined)
      .once("data", () => {
        socket.write(SWITCHED);
        socket.pause();
      });
    onTestFinished(() => void socket.destroy());
  });
  backend.listen(0, "127.0.0.1");
  await once(backend, "listening");
  onTestFinished(() => void backend.close());
  await using gate = await startSallyport({
    target: `http://127.0.0.1:${listeningPort(backend)}`,
    config: { server: { tls: "off", limits: { bufferedBytes: "2MiB" } } },
  });
  const resources = await resourcesOf(gate);
  const base = await resources.descriptors();
  const clients = Array.from({ length: COUNT }, () => {
    const socket = createConnection(gate.port, "127.0.0.1", () => socket.write(HANDSHAKE));
    socket.on("error", () => undefined).once("data", () => socket.write(FRAMES));
    onTestFinished(() => void socket.destroy());
    return socket;
  });
  await until(() => clients.filter(({ destroyed }) => destroyed).length > COUNT / 2, 60_000);
  // Two of each WebSocket that is open, and none of those that were ended.
  await until(async () => {
    const open = clients.filter(({ destroyed }) => !destroyed).length;
    return (await resources.descriptors()) <= base + 2 * open + KEPT;
  }, 15_000);
}, 90_000);
