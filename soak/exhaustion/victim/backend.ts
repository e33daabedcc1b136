/**
 * The backend of the attacked Sallyport, a separate program, so that its memory is not counted. Prints its port. With a
 * certificate and a key (files) as arguments, it also prints a port for HTTPS, and can be attacked itself.
 *
 *   /bytes?size=N   N bytes          /slow?ms=N      answers after N ms         /head?size=N   N bytes of header fields
 *   /ignore         never reads      /hints          early hints without end    /hang          never answers
 *   WebSocket: /flood sends without end, /deaf never reads, /hang never answers; everything else: 200, a few bytes
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { listeningPort } from "../../../test/support/listening-port.ts";

const PIECE = Buffer.alloc(64 * 1024, "sallyport ");

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", "http://backend");
  const size = Number(url.searchParams.get("size"));
  response.on("error", () => response.destroy());
  switch (url.pathname.split("/").at(-1)) {
    case "bytes":
      await sendBytes(response, size);
      break;
    case "slow":
      request.resume();
      await delay(Number(url.searchParams.get("ms")));
      response.end("at last\n");
      break;
    case "head":
      response.setHeader(
        "X-Large",
        Array.from({ length: size / 1000 }, () => "h".repeat(1000)),
      );
      response.end("ok\n");
      break;
    case "hints":
      await sendHints(response);
      break;
    case "ignore":
      request.pause();
      break;
    case "hang":
      request.resume();
      break;
    default:
      request.resume();
      response.end("ok\n");
  }
}

async function sendBytes(response: ServerResponse, size: number): Promise<void> {
  response.setHeader("Content-Length", size);
  for (let left = size; left > 0 && !response.destroyed; left -= PIECE.length) {
    if (!response.write(PIECE.subarray(0, left))) await flowing(response);
  }
  response.end();
}

async function sendHints(response: ServerResponse): Promise<void> {
  const hints = { link: Array.from({ length: 8 }, (_, i) => `</style-${i}.css>; rel=preload`) };
  while (!response.destroyed) {
    response.writeEarlyHints(hints);
    if (response.socket?.writableNeedDrain === true) await flowing(response.socket);
    else await delay(0);
  }
}

/** Resolves when more can be written, or the stream has closed. */
async function flowing(stream: NodeJS.EventEmitter): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = (): void => resolve();
  stream.once("drain", done).once("close", done);
  await promise;
  stream.off("drain", done).off("close", done);
}

/** RFC 6455 §4.2.2. */
const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/** An unmasked binary frame of 64 KiB (RFC 6455 §5.2). */
const FRAME = Buffer.concat([Buffer.from([0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]), PIECE]);

async function upgrade(request: IncomingMessage, socket: Duplex): Promise<void> {
  socket.on("error", () => socket.destroy());
  const kind = request.url?.split("/").at(-1);
  if (kind === "hang") return;
  const key = request.headers["sec-websocket-key"] ?? "";
  const accept = createHash("sha1").update(`${key}${GUID}`).digest("base64");
  const head = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n`;
  socket.write(`${head}Sec-WebSocket-Accept: ${accept}\r\n\r\n`);
  socket.pause();
  if (kind === "flood") await flood(socket);
}

async function flood(socket: Duplex): Promise<void> {
  while (!socket.destroyed) {
    if (!socket.write(FRAME)) await flowing(socket);
  }
}

function serve(server: Server, name: string): void {
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    void answer(request, response).catch(() => response.destroy());
  });
  server.on("upgrade", (request: IncomingMessage, socket: Duplex) => {
    void upgrade(request, socket).catch(() => socket.destroy());
  });
  server.listen(0, "127.0.0.1", () => console.log(`${name} ${listeningPort(server)}`));
}

const [certFile, keyFile] = process.argv.slice(2);
if (certFile !== undefined && keyFile !== undefined) {
  const [cert, key] = [readFileSync(certFile), readFileSync(keyFile)];
  serve(createSecureServer({ keepAliveTimeout: 60_000, cert, key }), "secure port");
}
serve(createServer({ keepAliveTimeout: 60_000 }), "port");
