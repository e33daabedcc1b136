import type { IncomingMessage, Server } from "node:http";
import { Server as SecureServer } from "node:https";
import type { TLSSocket } from "node:tls";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TrackedOutgoing } from "../../core/request/http-message.ts";
import { takeListeners, transportOf } from "../../lib/node-internals/node-sockets.ts";
import { setClientTimeouts } from "./client-timeouts.ts";
import { currentResponse, responsesOn, TrackedResponse } from "../request/tracked-response.ts";
import { type Connection, OpenConnections } from "./open-connections.ts";
import { inheritPeer } from "./proxy-protocol/proxied-peer.ts";
import { cut, refuseUnderWay, type RequestUnderWay } from "../request/cut-request.ts";
import { lingeringClose, useLingeringClose } from "./discard-body.ts";
import { type ListeningSockets, listenOn } from "./listening-sockets.ts";
import { Http2Connections } from "../http2/http2-connection.ts";
import { acceptByFirstBytes } from "../../lib/http/first-bytes.ts";
import { createHttpServer, HIGH_WATER_MARK } from "./create-server.ts";
import type { ListenChanges, ListenOptions } from "./listen-options.ts";
import { refuseWrongCertificate, renewContext, type ServerTls } from "../tls/tls-listener.ts";
import { callEach } from "../../lib/async/isolation.ts";
import { GateError } from "../../core/request/errors.ts";
import { SERVED_METHODS } from "../request/intake.ts";
import { createClientErrorHandler, refusePlainHttp } from "./client-error.ts";
import { serializePipelined } from "./pipelining.ts";

/**
 * The backlog of connections to accept; Linux caps it at `net.core.somaxconn`, 4,096 by default. Node accepts one
 * connection per turn of the event loop. With Node's default of 511, Linux drops more of them, and their clients retry
 * after 1, 3 and 7 s.
 */
const BACKLOG = 4_096;

/** Listens for clients and hands every request to the pipeline. Rejects when the port is not available. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const http2 = new Http2Connections(options);
  const server = createHttpServer(options, () => http2.offered);
  // The limit in bytes bounds the number of fields; Node's limit would hide fields instead of refusing them.
  server.maxHeadersCount = 0;
  const listener = new Listener(server, http2, options);
  attachHandlers(server, options);
  await listener.open();
  return listener;
}

/** Accepts connections, and ends them. */
export class Listener {
  readonly #server: Server;
  readonly #http2: Http2Connections;
  readonly #options: ListenOptions;
  /**
   * Closes the connections whose protocol is not known yet. Undefined over TLS, where clients choose HTTP/2 by ALPN
   * instead of beginning with it.
   */
  readonly #closeWaiting: (() => void) | undefined;
  readonly #connections: OpenConnections;
  /** Node's own listeners of an accepted connection. */
  readonly #begin: (socket: Socket) => void;
  #sockets: ListeningSockets | undefined;

  constructor(server: Server, http2: Http2Connections, options: ListenOptions) {
    this.#server = server;
    this.#http2 = http2;
    this.#options = options;
    const { tls } = options;
    if (tls === undefined) {
      this.#closeWaiting = acceptByFirstBytes(server, {
        offered: () => http2.offered,
        headerMs: () => this.#connections.headerMs,
        accept: (socket) => http2.accept(socket),
      });
    } else this.#acceptSecure(tls);
    this.#begin = takeListeners(server, "connection");
    const { reading } = options;
    this.#connections = new OpenConnections(server, options, (connection) => {
      const { socket, client } = connection;
      if (reading.accept(socket, client)) this.#start(connection);
      else reading.postpone(socket, () => this.#start(connection));
    });
    this.change({ ...options, tls: undefined });
  }

  /** Lets Node read a connection. */
  #start(connection: Connection): void {
    if (this.#options.tls === undefined) this.#carry(connection);
    this.#begin(connection.socket);
  }

  /** Accepts the requests of connections whose TLS handshake is complete. */
  #acceptSecure({ clientCertificates }: ServerTls): void {
    const server = this.#server;
    const acceptHttp1 = takeListeners(server, "secureConnection");
    const mayHaveCertificate = clientCertificates?.required === false;
    server.on("secureConnection", (socket: TLSSocket) => {
      if (mayHaveCertificate && refuseWrongCertificate(server, socket)) return;
      const below = transportOf(socket);
      const connection = below && this.#connections.get(below);
      // It was closed during the handshake.
      if (connection === undefined) {
        socket.destroy();
        return;
      }
      if (this.#options.proxyProtocol) inheritPeer(socket, connection.socket);
      connection.carrier = socket;
      this.#carry(connection);
      if (socket.alpnProtocol === "h2") this.#http2.accept(socket);
      else acceptHttp1(socket);
      // After Node has its listeners: the one for `resume` starts to read, and a paused connection is stopped again after it.
      this.#options.reading.track(socket, connection.socket);
    });
  }

  /** Prepares a connection for requests. */
  #carry({ carrier, client }: Connection): void {
    useLingeringClose(carrier);
    this.#options.buffered.open(carrier, client);
  }

  get address(): string {
    return this.#sockets?.host ?? this.#options.host;
  }

  get port(): number {
    return this.#sockets?.port ?? this.#options.port;
  }

  async open(): Promise<void> {
    const { host, port, shared, log } = this.#options;
    this.#sockets = await listenOn(
      this.#server,
      { host, port, shared, backlog: BACKLOG },
      { highWaterMark: HIGH_WATER_MARK },
      (error) => log.error("the listener failed", { error }),
    );
  }

  /**
   * Applies new limits, timeouts and another certificate. Cannot change the address or `limits.headerBytes`, nor switch to
   * or from plain HTTP. Throws the error of OpenSSL if the certificate is unusable, and then changes nothing.
   */
  change({ tls, http2, limits, timeouts }: ListenChanges): void {
    const server = this.#server;
    this.#http2.change({ http2, limits, timeouts });
    if (tls !== undefined && server instanceof SecureServer) renewContext(server, tls);
    this.#connections.limits = limits;
    this.#connections.headerMs = timeouts.header;
    setClientTimeouts(server, timeouts);
    server.setTimeout(timeouts.stall);
  }

  /** Makes responses that have not begun announce that their connection will close. */
  announceClose(): void {
    for (const response of this.#responses()) {
      if (!response.headersSent) response.shouldKeepAlive = false;
    }
    this.#http2.announceClose();
  }

  /** Stops accepting connections; resolves when the open ones have closed. */
  async close(): Promise<void> {
    await this.#sockets?.close();
  }

  /** Closes idle connections. */
  closeIdle(): void {
    this.#server.closeIdleConnections();
    this.#closeWaiting?.();
    this.#http2.close();
  }

  /** The permitted requests that have not been answered completely. */
  *requests(): Iterable<RequestUnderWay> {
    for (const response of this.#responses()) {
      const { permit, transfer } = response;
      // A WebSocket on an HTTP/2 stream is one of `Forwarder.openWebSockets`.
      if (permit !== undefined && transfer?.webSocket === undefined) yield { permit, response };
    }
  }

  *#responses(): Iterable<TrackedOutgoing> {
    for (const { carrier } of this.#connections) yield* responsesOn(carrier);
  }

  /** Answers pending requests with 503, and closes all other connections. */
  refuseAll(): void {
    const { observer, rules } = this.#options;
    callEach(this.#connections, ({ carrier }) => {
      let refused = 0;
      for (const response of responsesOn(carrier)) {
        if (!refuseUnderWay(response, "drain_timeout", rules.current.realm)) continue;
        observer.requestRefused("drain_timeout");
        refused += 1;
      }
      if (refused === 0) carrier.destroy();
    });
  }

  /** Closes all connections at once. */
  closeAll(): void {
    // Node's own `closeAllConnections` omits WebSockets, and connections with an unfinished TLS handshake.
    for (const { socket } of this.#connections) socket.destroy();
  }
}

/** Passes the server's events about requests to the pipeline. */
function attachHandlers(server: Server, options: ListenOptions): void {
  const { pipeline, observer, buffered, reading } = options;
  const onRequest = serializePipelined({
    handler: pipeline,
    refused: () => observer.requestRefused("pipelined"),
    buffered,
    reading,
  });
  server.on("request", onRequest);
  // The pipeline sends 100 Continue once the backend wants the body.
  server.on("checkContinue", onRequest);
  server.on("checkExpectation", (request: IncomingMessage, response: TrackedResponse) => {
    if (request.socket.writableEnded) return;
    pipeline.refuse(request, response, new GateError("expectation_failed"));
  });
  server.on("upgrade", (request: IncomingMessage, stream: Duplex, head: Buffer) => {
    reading.chargeUpgrade(request.socket);
    const response = detachedResponse(request, stream);
    if (response === undefined) return;
    void pipeline.handleUpgrade(request, response, { head, stream: undefined });
  });
  server.on("connect", (request: IncomingMessage, stream: Duplex) => {
    const response = detachedResponse(request, stream);
    if (response === undefined) return;
    pipeline.refuse(
      request,
      response,
      new GateError("method_not_allowed", { allow: SERVED_METHODS }),
    );
  });
  server.on("clientError", createClientErrorHandler(options));
  server.on("tlsClientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    if (!refusePlainHttp(error, socket, options)) observer.requestRefused("tls_handshake");
  });
  server.on("timeout", (socket: Socket) => {
    if (currentResponse(socket) !== undefined) observer.requestRefused("stalled");
    cut(socket, "stalled");
  });
}

/**
 * Creates a response on a socket that Node has detached; the connection closes after it. For a request with a body, Node 26
 * passes a stream other than the socket, which ends and fails together with it: such a request is refused, also on the socket.
 *
 * @returns undefined if the connection is closing, or closes after an earlier response that the client did not wait for.
 */
function detachedResponse(request: IncomingMessage, stream: Duplex): TrackedResponse | undefined {
  const { socket } = request;
  socket.on("error", () => socket.destroy());
  stream.on("error", () => socket.destroy());
  if (socket.writableEnded) {
    lingeringClose(socket);
    return undefined;
  }
  const before = currentResponse(socket);
  if (before !== undefined) {
    before.once("close", () => lingeringClose(socket));
    return undefined;
  }
  const response = new TrackedResponse(request);
  response.shouldKeepAlive = false;
  response.detached = true;
  response.assignSocket(socket);
  socket.on("drain", () => response.emit("drain"));
  response.once("finish", () => lingeringClose(socket));
  return response;
}
