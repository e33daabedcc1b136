import type { IncomingMessage, Server } from "node:http";
import { Server as SecureServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { Server as TlsServer } from "node:tls";
import { GateError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Observer } from "../core/observer.ts";
import { networkOf } from "../lib/client-network.ts";
import type { Networks } from "../lib/networks.ts";
import { createServer } from "../lib/node-http.ts";
import { createClientErrorHandler, responseUnderWay } from "./client-error.ts";
import { limitConnections } from "./connection-limit.ts";
import { endGently } from "./end-gently.ts";
import { inTurn } from "./in-turn.ts";
import type { Pipeline } from "./pipeline.ts";
import { createTlsServer, renewContext, type ServerTls } from "./tls-listener.ts";
import { TrackedResponse } from "./tracked-response.ts";

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** Whether several threads accept on the port. */
  readonly shared: boolean;
  /** Undefined for plain HTTP. */
  readonly tls: ServerTls | undefined;
  readonly limits: {
    readonly headerBytes: number;
    readonly connections: number;
    readonly connectionsPerAddress: number;
  };
  /** Not limited by address: clients stand behind them. */
  readonly trustedProxies: Networks;
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
  readonly realm: () => string;
  readonly observer: Pick<Observer, "rejected" | "requestStarted" | "requestFinished">;
  readonly log: Log;
}

/** What may change while it listens; a connection keeps the certificate that it was made with. */
export type ListenChanges = Pick<ListenOptions, "tls" | "limits" | "timeouts">;

export interface Listener {
  readonly address: string;
  readonly port: number;
  /**
   * Takes other limits, times and another certificate; not another address, `limits.headerBytes` or the change to or from
   * plain HTTP. Throws the error of OpenSSL when the certificate cannot be used, and then has changed nothing.
   */
  change(changes: ListenChanges): void;
  /** Has the answers that are still to begin say that their connections end with them. */
  announceClose(): void;
  /** Takes no more connections; resolves when those that are open have ended. */
  close(): Promise<void>;
  /** Ends the connections on which nothing runs. */
  closeIdle(): void;
  /** Ends all connections, whatever runs on them. */
  closeAll(): void;
}

/**
 * So much of an answer waits for a slow client, in bytes, before the backend is told to wait. With Node's 64 KiB every part
 * of a large answer stops the flow: a download over TLS took 1.12 times the processor time.
 */
const WAITING_BYTES = 256 * 1024;

/** How often Node looks for connections whose time is up, in milliseconds. */
const CHECK_EVERY_MS = 1_000;

/** Listens for clients and hands every request to the pipeline. Rejects when the port cannot be had. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const server = createHttpServer(options);
  let perAddress = 0;
  const change = ({ tls, limits, timeouts }: ListenChanges): void => {
    if (tls !== undefined && server instanceof SecureServer) renewContext(server, tls);
    server.maxConnections = limits.connections;
    perAddress = limits.connectionsPerAddress;
    server.headersTimeout = timeouts.header;
    server.requestTimeout = Math.max(timeouts.request, timeouts.header);
    server.keepAliveTimeout = timeouts.keepAlive;
    server.setTimeout(timeouts.stall);
  };
  change({ ...options, tls: undefined });
  limitConnections(server, {
    perAddress: () => perAddress,
    clientOf: networkOf,
    // All connections are limited by `maxConnections`.
    together: () => Infinity,
    exempt: options.trustedProxies,
    refused: () => options.observer.rejected("connections_per_address"),
  });
  // The limit in bytes bounds the number; a limit of Node's would hide fields instead of refusing them.
  server.maxHeadersCount = 0;
  const connections = openOf(server, "connection");
  // What answers are written to.
  const open = server instanceof TlsServer ? openOf(server, "secureConnection") : connections;
  server.on(server instanceof TlsServer ? "secureConnection" : "connection", endsGently);
  attach(server, options);
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
    change,
    announceClose() {
      for (const socket of open) {
        const response = responseUnderWay(socket);
        if (response?.headersSent === false) response.shouldKeepAlive = false;
      }
    },
    close: () => new Promise((resolve) => void server.close(() => resolve())),
    closeIdle: () => server.closeIdleConnections(),
    closeAll: () => {
      // Node's own `closeAllConnections` leaves out WebSockets, and connections whose TLS handshake is not over.
      for (const socket of connections) socket.destroy();
    },
  };
}

/** What Node calls when the last answer on a connection is out: as it comes, it closes at once. */
function endsGently(socket: Socket): void {
  socket.destroySoon = () => endGently(socket);
}

/** The sockets of this event that are open: those of `secureConnection` are wrapped around those of `connection`. */
function openOf(server: Server, event: "connection" | "secureConnection"): ReadonlySet<Socket> {
  const open = new Set<Socket>();
  server.on(event, (socket: Socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  return open;
}

function createHttpServer(options: ListenOptions): Server {
  const { header } = options.timeouts;
  const http = {
    maxHeaderSize: options.limits.headerBytes,
    connectionsCheckingInterval: CHECK_EVERY_MS,
    // Ours refuses with the envelope.
    requireHostHeader: false,
    insecureHTTPParser: false,
    noDelay: true,
    optimizeEmptyRequests: true,
    highWaterMark: WAITING_BYTES,
    ServerResponse: TrackedResponse,
  };
  if (options.tls === undefined) return createServer(http);
  return createTlsServer({ ...http, handshakeTimeout: header }, options.tls);
}

function attach(server: Server, options: ListenOptions): void {
  const { pipeline, observer } = options;
  const handle = inTurn(
    (request, response) => void pipeline.handle(request, response),
    () => observer.rejected("pipelined"),
  );
  server.on("request", handle);
  // The pipeline tells the client to continue when the backend wants the body.
  server.on("checkContinue", handle);
  server.on("checkExpectation", (request: IncomingMessage, response: TrackedResponse) => {
    if (request.socket.writableEnded) return;
    pipeline.refuse(request, response, new GateError("expectation_failed"));
  });
  server.on("upgrade", (request: IncomingMessage, _stream: Duplex, head: Buffer) => {
    const response = responseOn(request);
    if (response !== undefined) void pipeline.handleUpgrade(request, response, head);
  });
  server.on("connect", (request: IncomingMessage) => {
    const response = responseOn(request);
    if (response === undefined) return;
    pipeline.refuse(request, response, new GateError("method_not_allowed", { allow: "GET, HEAD" }));
  });
  server.on("clientError", createClientErrorHandler(options));
  server.on("tlsClientError", () => observer.rejected("tls_handshake"));
  server.on("drop", () => observer.rejected("connections"));
}

/**
 * A response on a socket that Node has let go of; the connection ends with it. For a request with a body Node 26 hands out
 * another stream than the socket: the request is refused, on the socket like all others.
 *
 * @returns undefined when the connection ends already, or an answer is still under way there: the request behind it came
 * before it could know whether its own is wanted. It is not looked at, and the connection ends with the answer before it.
 */
function responseOn(request: IncomingMessage): TrackedResponse | undefined {
  const { socket } = request;
  socket.on("error", () => socket.destroy());
  if (socket.writableEnded) {
    endGently(socket);
    return undefined;
  }
  const before = responseUnderWay(socket);
  if (before !== undefined) {
    before.once("close", () => endGently(socket));
    return undefined;
  }
  const response = new TrackedResponse(request);
  response.shouldKeepAlive = false;
  response.detached = true;
  response.assignSocket(socket);
  socket.on("drain", () => response.emit("drain"));
  response.once("finish", () => endGently(socket));
  return response;
}
