import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { GateError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Observer } from "../core/observer.ts";
import { createClientErrorHandler } from "./client-error.ts";
import type { Pipeline } from "./pipeline.ts";
import { TrackedResponse } from "./tracked-response.ts";

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** Whether several threads accept on the port. */
  readonly shared: boolean;
  /** PEM texts; undefined for plain HTTP. */
  readonly tls:
    | { readonly cert: string; readonly key: string; readonly minVersion: "TLSv1.2" | "TLSv1.3" }
    | undefined;
  readonly limits: { readonly headerBytes: number; readonly connections: number };
  /**
   * Milliseconds: for a request's head, for the whole request, between two requests, and without a byte in either
   * direction while a request is under way (a client that never reads).
   */
  readonly timeouts: {
    readonly header: number;
    readonly request: number;
    readonly keepAlive: number;
    readonly stall: number;
  };
  readonly pipeline: Pipeline;
  readonly nextId: () => number;
  readonly realm: string;
  readonly observer: Pick<Observer, "rejected" | "requestStarted" | "requestFinished">;
  readonly log: Log;
}

export interface Listener {
  readonly address: string;
  readonly port: number;
  /** Takes no more connections; resolves when those that are open have ended. */
  close(): Promise<void>;
  /** Ends the connections on which nothing runs. */
  closeIdle(): void;
  /** Ends all connections, whatever runs on them. */
  closeAll(): void;
}

/** How often Node looks for connections whose time is up, in milliseconds. */
const CHECK_EVERY_MS = 1_000;

/** Listens for clients and hands every request to the pipeline. Rejects when the port cannot be had. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const server = createHttpServer(options);
  server.maxConnections = options.limits.connections;
  server.setTimeout(options.timeouts.stall);
  // The limit in bytes bounds the number; a limit of Node's would hide fields instead of refusing them.
  server.maxHeadersCount = 0;
  const upgraded = new Set<Socket>();
  attach(server, options, upgraded);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    const { host, port, shared } = options;
    server.listen({ host, port, reusePort: shared }, () => {
      server.off("error", reject);
      resolve();
    });
  });
  server.on("error", (error) => options.log.error("the listener failed", { error }));
  const bound = server.address();
  const { address, port } =
    typeof bound === "object" && bound !== null ? bound : { address: options.host, port: 0 };
  return {
    address,
    port,
    close: () => new Promise((resolve) => void server.close(() => resolve())),
    closeIdle: () => server.closeIdleConnections(),
    closeAll: () => {
      server.closeAllConnections();
      for (const socket of upgraded) socket.destroy();
    },
  };
}

function createHttpServer(options: ListenOptions): Server {
  const { header, request, keepAlive } = options.timeouts;
  const http = {
    maxHeaderSize: options.limits.headerBytes,
    headersTimeout: header,
    requestTimeout: Math.max(request, header),
    keepAliveTimeout: keepAlive,
    connectionsCheckingInterval: CHECK_EVERY_MS,
    // Ours refuses with the envelope.
    requireHostHeader: false,
    insecureHTTPParser: false,
    noDelay: true,
    optimizeEmptyRequests: true,
    ServerResponse: TrackedResponse,
  };
  if (options.tls === undefined) return createServer(http);
  const { cert, key, minVersion } = options.tls;
  return createSecureServer({
    ...http,
    cert,
    key,
    minVersion,
    handshakeTimeout: header,
    honorCipherOrder: true,
    ALPNProtocols: ["http/1.1"],
  });
}

function attach(server: Server, options: ListenOptions, upgraded: Set<Socket>): void {
  const { pipeline, observer } = options;
  const handle = (request: IncomingMessage, response: TrackedResponse): void => {
    void pipeline.handle(request, response);
  };
  server.on("request", handle);
  // The pipeline tells the client to continue when the backend wants the body.
  server.on("checkContinue", handle);
  server.on("checkExpectation", (request: IncomingMessage, response: TrackedResponse) => {
    pipeline.refuse(request, response, new GateError("expectation_failed"));
  });
  server.on("upgrade", (request: IncomingMessage, _stream: Duplex, head: Buffer) => {
    const response = responseOn(request, upgraded);
    void pipeline.handleUpgrade(request, response, head);
  });
  server.on("connect", (request: IncomingMessage) => {
    const response = responseOn(request, upgraded);
    pipeline.refuse(request, response, new GateError("method_not_allowed", { allow: "GET, HEAD" }));
  });
  server.on("clientError", createClientErrorHandler(options));
  server.on("tlsClientError", () => observer.rejected("tls_handshake"));
  server.on("drop", () => observer.rejected("connections"));
}

/**
 * A response on a socket that Node has let go of; the connection ends with it. For a request with a body Node 26 hands out
 * another stream than the socket: the request is refused, on the socket like all others.
 */
function responseOn(request: IncomingMessage, upgraded: Set<Socket>): TrackedResponse {
  const { socket } = request;
  upgraded.add(socket);
  socket.once("close", () => upgraded.delete(socket));
  socket.on("error", () => socket.destroy());
  const response = new TrackedResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  socket.on("drain", () => response.emit("drain"));
  response.once("finish", () => {
    socket.end();
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  });
  return response;
}

/** How long a client may take to read the refusal of an upgrade, in milliseconds. */
const LINGER_MS = 1_000;
