/**
 * A backend that needs no Debian package: it answers a GET with small JSON, begins an answer to /held that never ends,
 * reports the size of a body, and accepts WebSockets (RFC 6455 §4.2.2), on which it sends nothing. Prints its port.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const SMALL = JSON.stringify({ order: 4711, text: "x".repeat(100) });

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.url === "/held") {
    response.writeHead(200, { "content-type": "text/plain" }).flushHeaders();
    return;
  }
  let bytes = 0;
  for await (const chunk of request) bytes += Buffer.byteLength(chunk);
  const body = bytes === 0 ? SMALL : JSON.stringify({ bytes });
  response.writeHead(200, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
  });
  response.end(body);
}

const server = createServer((request, response) => {
  answer(request, response).catch(() => response.destroy());
});
server.keepAliveTimeout = 600_000;
server.on("upgrade", (request, socket) => {
  const key = request.headers["sec-websocket-key"] ?? "";
  const accept = createHash("sha1").update(`${key}${GUID}`).digest("base64");
  socket.on("error", () => socket.destroy()).resume();
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
});
server.listen({ port: 0, host: "127.0.0.1", backlog: 4096 }, () => {
  const address = server.address();
  console.log(`listening ${typeof address === "object" ? address?.port : 0}`);
});
