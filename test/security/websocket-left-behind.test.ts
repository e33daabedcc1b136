/**
 * WebSockets to a backend that does not read. A client sends frames until no more are accepted, and its connection
 * ends, for example because the budget for buffered data is used up. Its data still waits for the backend, and a
 * socket that ends when everything is written never ends. Each such connection left 370 KB and a descriptor behind,
 * beyond every limit: with a budget of 32 MiB, one client occupied 445 MiB. Sallyport gives the backend a second to
 * read the rest, or no time if memory is scarce, and then drops the connection.
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
/** More than the kernel buffers on both sides for a backend that does not read. */
const FRAMES = Buffer.concat(Array.from({ length: 2_000 }, () => FRAME));
/** Our own connections, for example to the metrics. */
const KEPT = 4;

it("drops data that waits for the backend when a client's connection ends", async () => {
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
    withoutToken: true,
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
  // Two for each open WebSocket, and none of the ended ones.
  await until(async () => {
    const open = clients.filter(({ destroyed }) => !destroyed).length;
    return (await resources.descriptors()) <= base + 2 * open + KEPT;
  }, 15_000);
}, 90_000);
