import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { Duplex } from "node:stream";
import { WebSocket, WebSocketServer } from "ws";
import { listeningPort } from "./listening-port.ts";
import type { Peer } from "./raw-client.ts";

export interface WebSocketBackend extends AsyncDisposable {
  readonly url: string;
  /** The upgrade requests received: targets, and headers with alternating names and values. */
  readonly upgrades: readonly { readonly url: string; readonly rawHeaders: readonly string[] }[];
  readonly open: () => number;
  /** The close codes of ended connections. */
  readonly closeCodes: readonly number[];
  /** Drops every connection without a closing handshake. */
  dropAll(): void;
  close(): Promise<void>;
}

/**
 * Starts a backend that echoes every message. A target that ends in `/refuse` gets 403 instead of an upgrade.
 * @param tls its certificate; without one it uses plain HTTP.
 */
export async function startWebSocketBackend(tls?: {
  readonly key: string;
  readonly cert: string;
}): Promise<WebSocketBackend> {
  const upgrades: { url: string; rawHeaders: string[] }[] = [];
  const closeCodes: number[] = [];
  const server = tls === undefined ? createServer() : createSecureServer(tls);
  server.on("request", (_request, response) => response.end("no websocket"));
  const sockets = new WebSocketServer({ noServer: true });
  server.on("upgrade", (request, socket, head) => {
    upgrades.push({ url: request.url ?? "", rawHeaders: request.rawHeaders });
    if (request.url?.endsWith("/refuse") === true) {
      socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
      return;
    }
    sockets.handleUpgrade(request, socket, head, (client) => {
      client.on("message", (message, binary) => client.send(message, { binary }));
      client.on("close", (code) => closeCodes.push(code));
      client.on("error", () => client.terminate());
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const dropAll = (): void => {
    for (const client of sockets.clients) {
      client.terminate();
    }
  };
  const close = async (): Promise<void> => {
    dropAll();
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  };
  return {
    url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${listeningPort(server)}`,
    upgrades,
    open: () => sockets.clients.size,
    closeCodes,
    dropAll,
    close,
    [Symbol.asyncDispose]: close,
  };
}

export interface WebSocketClient extends Disposable {
  send(text: string): void;
  /** Resolves with the next message. */
  message(): Promise<string>;
  /** Resolves with the close code; 1006 if the connection ended without one. */
  readonly closed: Promise<number>;
  close(code?: number): void;
}

/** Thrown when the peer answers the upgrade with an ordinary response. */
export class UpgradeRefused extends Error {
  readonly status: number;
  readonly response: IncomingMessage;

  constructor(response: IncomingMessage) {
    super(`the upgrade was answered with ${response.statusCode}`);
    this.status = response.statusCode ?? 0;
    this.response = response;
  }
}

/** Opens a WebSocket. Rejects with `UpgradeRefused` if the peer sends an ordinary response. */
export async function openWebSocket(
  peer: Peer,
  path: string,
  headers: Record<string, string> = {},
): Promise<WebSocketClient> {
  const scheme = peer.ca === undefined ? "ws" : "wss";
  const socket = new WebSocket(`${scheme}://127.0.0.1:${peer.port}${path}`, {
    headers,
    ...(peer.ca === undefined ? {} : { ca: peer.ca }),
  });
  const { promise: opened, resolve: open, reject: refuse } = Promise.withResolvers<void>();
  socket.on("open", open);
  socket.on("error", refuse);
  socket.on("unexpected-response", (_request, response) => {
    refuse(new UpgradeRefused(response));
    response.destroy();
  });
  const client = clientOf(socket);
  await opened;
  return client;
}

/** Wraps a WebSocket in the interface for tests. */
function clientOf(socket: WebSocket): WebSocketClient {
  const arrived: string[] = [];
  const waiting: ((text: string) => void)[] = [];
  const { promise: closed, resolve: resolveClosed } = Promise.withResolvers<number>();
  socket.on("close", resolveClosed);
  socket.on("message", (message: Buffer) => {
    const next = waiting.shift();
    if (next === undefined) {
      arrived.push(message.toString());
    } else {
      next(message.toString());
    }
  });
  return {
    send: (text) => socket.send(text),
    message() {
      const text = arrived.shift();
      return text === undefined
        ? new Promise((resolve) => waiting.push(resolve))
        : Promise.resolve(text);
    },
    closed,
    close: (code) => socket.close(code),
    [Symbol.dispose]: () => socket.terminate(),
  };
}

/** Creates the client end of a WebSocket on an open HTTP/2 stream. `ws` reads and writes the frames. */
export function webSocketOn(stream: Duplex): WebSocketClient {
  const options = { autoPong: true, closeTimeout: 30_000 };
  const socket: WebSocket = Reflect.construct(WebSocket, [null, undefined, options]);
  // Without an address `ws` acts as the server, which does not mask frames.
  Object.assign(socket, { _isServer: false });
  socket.on("error", () => undefined);
  const client = clientOf(socket);
  Reflect.apply(Reflect.get(socket, "setSocket"), socket, [
    stream,
    Buffer.alloc(0),
    { allowSynchronousEvents: true, maxPayload: 0, skipUTF8Validation: false },
  ]);
  return client;
}
