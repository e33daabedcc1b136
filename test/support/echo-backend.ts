import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import { testCertificates } from "./certificates.ts";
import { listeningPort } from "./listening-port.ts";

/** A request that the backend received. It is echoed as JSON, unless the path is special. */
interface EchoedRequest {
  readonly method: string;
  /** Exactly as in the request line. */
  readonly url: string;
  /** Alternating names and values, as received. */
  readonly rawHeaders: readonly string[];
  readonly rawTrailers: readonly string[];
  readonly bodyLength: number;
  readonly bodySha256: string;
  /** The number of its connection, from 1. */
  readonly connection: number;
}

export interface EchoBackend extends AsyncDisposable {
  /** A target for the configuration: `http://…`, `https://…` or `unix:…`. */
  readonly url: string;
  /** Finished requests, in order. */
  readonly requests: readonly EchoedRequest[];
  /** The number of requests whose connection closed before they were answered. */
  readonly abandoned: () => number;
  readonly connectionCount: () => number;
  /** Sends one event to all listeners on `/sse`; `undefined` ends the streams. */
  emitEvent(text: string | undefined): void;
  readonly listeners: () => number;
  close(): Promise<void>;
}

export interface EchoOptions {
  readonly tls?: { readonly requestClientCertificate?: boolean };
  /** Path of a Unix socket to listen on, instead of a port. */
  readonly socketPath?: string;
}

/**
 * Echoes each request. Special paths (matched by their end, so that they work under any prefix): `/sse`, `/slow?ms=N`,
 * `/big?bytes=N`, `/status/NNN`, `/trailers`, `/early-hints`, `/hang`, `/die-mid-body`, `/redirect`, `/cookies`.
 */
export async function startEchoBackend(options: EchoOptions = {}): Promise<EchoBackend> {
  const requests: EchoedRequest[] = [];
  const streams = new Set<ServerResponse>();
  const sockets = new Map<Socket, number>();
  let opened = 0;
  let abandoned = 0;

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    response.on("close", () => {
      streams.delete(response);
      abandoned += response.writableFinished ? 0 : 1;
    });
    const echoed = await readRequest(request, sockets.get(request.socket) ?? 0);
    requests.push(echoed);
    const url = new URL(echoed.url, "http://echo.invalid");
    const special = SPECIAL.find(([pattern]) => pattern.test(url.pathname));
    if (url.pathname.endsWith("/sse")) {
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
      streams.add(response);
    } else if (special === undefined) {
      response.writeHead(200, { "content-type": "application/json", "x-echo": "1" });
      response.end(JSON.stringify(echoed));
    } else {
      await special[1](response, url);
    }
  };
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    answer(request, response).catch(() => response.destroy());
  };

  const { server: pair, ca } = await testCertificates();
  const server =
    options.tls === undefined
      ? createServer(handle)
      : createTlsServer(
          {
            ...pair,
            ca,
            requestCert: options.tls.requestClientCertificate ?? false,
            rejectUnauthorized: true,
          },
          handle,
        );
  server.on(options.tls === undefined ? "connection" : "secureConnection", (socket: Socket) => {
    opened += 1;
    sockets.set(socket, opened);
    socket.on("close", () => sockets.delete(socket));
  });
  if (options.socketPath === undefined) {
    server.listen(0, "127.0.0.1");
  } else {
    server.listen(options.socketPath);
  }
  await once(server, "listening");

  const close = async (): Promise<void> => {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  };
  const scheme = options.tls === undefined ? "http" : "https";
  return {
    url:
      options.socketPath === undefined
        ? `${scheme}://127.0.0.1:${listeningPort(server)}`
        : `unix:${options.socketPath}`,
    requests,
    abandoned: () => abandoned,
    connectionCount: () => opened,
    listeners: () => streams.size,
    emitEvent(text) {
      for (const stream of streams) {
        if (text === undefined) {
          stream.end();
        } else {
          stream.write(`data: ${text}\n\n`);
        }
      }
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

type Special = (response: ServerResponse, url: URL) => void | Promise<void>;

const SPECIAL: readonly (readonly [RegExp, Special])[] = [
  [
    /\/slow$/,
    async (response, url) => {
      await delay(Number(url.searchParams.get("ms") ?? "100"));
      response.end("slow");
    },
  ],
  [/\/big$/, (response, url) => sendBytes(response, Number(url.searchParams.get("bytes") ?? "1"))],
  [
    /\/status\/\d{3}$/,
    (response, url) => {
      response.writeHead(Number(url.pathname.slice(-3)), { "x-echo": "1" }).end();
    },
  ],
  [
    /\/trailers$/,
    (response) => {
      response.writeHead(200, { trailer: "grpc-status" });
      response.write("body");
      response.addTrailers({ "grpc-status": "0" });
      response.end();
    },
  ],
  [
    /\/early-hints$/,
    (response) => {
      response.writeEarlyHints({ link: "</style.css>; rel=preload" });
      response.end("after hints");
    },
  ],
  [/\/hang$/, () => undefined],
  [
    /\/die-mid-body$/,
    (response) => {
      response.writeHead(200, { "content-length": 1000 });
      response.write("only this", () => response.destroy());
    },
  ],
  [/\/redirect$/, (response) => void response.writeHead(302, { location: "/elsewhere" }).end()],
  [
    /\/cookies$/,
    (response) => {
      response.writeHead(200, [
        ["set-cookie", "a=1"],
        ["set-cookie", "b=2"],
      ]);
      response.end("crumbs");
    },
  ],
];

async function readRequest(request: IncomingMessage, connection: number): Promise<EchoedRequest> {
  const hash = createHash("sha256");
  let bodyLength = 0;
  for await (const chunk of request) {
    const bytes: Buffer = chunk;
    hash.update(bytes);
    bodyLength += bytes.length;
  }
  return {
    method: request.method ?? "",
    url: request.url ?? "",
    rawHeaders: request.rawHeaders,
    rawTrailers: request.rawTrailers,
    bodyLength,
    bodySha256: hash.digest("hex"),
    connection,
  };
}

async function sendBytes(response: ServerResponse, bytes: number): Promise<void> {
  response.writeHead(200, { "content-length": bytes });
  await pipeline(Readable.from(blocks(bytes)), response);
}

function* blocks(bytes: number): Generator<Buffer> {
  const block = Buffer.alloc(64 * 1024, "x");
  for (let left = bytes; left > 0; left -= block.length) yield block.subarray(0, left);
}
