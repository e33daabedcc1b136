import type { Server } from "node:http";
import { Server as SecureServer } from "node:https";
import type { Socket } from "node:net";
import { Server as TlsServer } from "node:tls";
import type { TrackedOutgoing } from "../../core/request/http-message.ts";
import { clientNetwork } from "../../lib/http/networks.ts";
import { setClientTimeouts } from "./client-timeouts.ts";
import { responsesOn } from "../request/current-responses.ts";
import type { ConnectionLimits } from "./connection-counts.ts";
import { limitConnections } from "./connection-limit.ts";
import { refuseUnderWay, type RequestUnderWay } from "../request/cut-request.ts";
import { useLingeringClose } from "./lingering-close.ts";
import { clientOf } from "./reading/connection-client.ts";
import { attachHandlers } from "./server-events.ts";
import { type ListeningSockets, listenOn } from "./listening-sockets.ts";
import { Http2Connections } from "../http2/http2-connections.ts";
import { FirstBytes } from "../../lib/http/first-bytes.ts";
import { isHttp2 } from "../http2/protocols.ts";
import { createHttpServer, HIGH_WATER_MARK } from "./create-server.ts";
import type { ListenOptions, ListenChanges } from "./listen-options.ts";
import { renewContext } from "../tls/tls-listener.ts";

export interface Listener {
  readonly address: string;
  readonly port: number;
  /**
   * Applies new limits, timeouts and another certificate. Cannot change the address or `limits.headerBytes`, nor switch to
   * or from plain HTTP. Throws the error of OpenSSL if the certificate is unusable, and then changes nothing.
   */
  change(changes: ListenChanges): void;
  /** Makes responses that have not begun announce that their connection will close. */
  announceClose(): void;
  /** Stops accepting connections; resolves when the open ones have closed. */
  close(): Promise<void>;
  /** Closes idle connections. */
  closeIdle(): void;
  /** Answers pending requests with 503, and closes all other connections. */
  refuseAll(): void;
  /** The permitted requests that have not been answered completely. */
  requests(): Iterable<RequestUnderWay>;
  /** Closes all connections at once. */
  closeAll(): void;
}

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
  const listener = new HttpListener(server, http2, options);
  if (options.tls === undefined) listener.acceptPriorKnowledge();
  listener.change({ ...options, tls: undefined });
  limitConnections(server, {
    counts: options.counts,
    limits: () => listener.connectionLimits,
    clientOf: clientNetwork,
    exempt: options.trustedProxies,
    proxies: options.proxyProtocol
      ? {
          headerMs: () => options.timeouts.header,
          onRefused: () => options.observer.requestRefused("proxy_protocol"),
        }
      : undefined,
    admit: (socket, client, begin) => options.reading.accept(socket, client, begin),
    onRefused: (broken) =>
      options.observer.requestRefused(
        broken === "total" ? "connections" : "connections_per_address",
      ),
  });
  // The limit in bytes bounds the number of fields; Node's limit would hide fields instead of refusing them.
  server.maxHeadersCount = 0;
  listener.track();
  options.buffered.trackServer(server, (socket) => clientOf(socket, options.trustedProxies));
  attachHandlers(server, options);
  server.on("secureConnection", (socket: Socket) => {
    if (isHttp2(socket)) http2.accept(socket);
  });
  await listener.open();
  return listener;
}

class HttpListener implements Listener {
  readonly #server: Server;
  readonly #http2: Http2Connections;
  readonly #options: ListenOptions;
  #sockets: ListeningSockets | undefined;
  #firstBytes: FirstBytes | undefined;
  #connections: ReadonlySet<Socket> = new Set();
  /** The sockets that answers are written to: for TLS, those that wrap the connections. */
  #open: ReadonlySet<Socket> = new Set();
  connectionLimits: ConnectionLimits = { total: 0, perClient: 0 };

  constructor(server: Server, http2: Http2Connections, options: ListenOptions) {
    this.#server = server;
    this.#http2 = http2;
    this.#options = options;
  }

  get address(): string {
    return this.#sockets?.host ?? this.#options.host;
  }

  get port(): number {
    return this.#sockets?.port ?? this.#options.port;
  }

  /** Tracks every connection from now on. */
  track(): void {
    const server = this.#server;
    const { reading, trustedProxies } = this.#options;
    const event = server instanceof TlsServer ? "secureConnection" : "connection";
    this.#connections = trackOpen(server, "connection");
    this.#open = event === "connection" ? this.#connections : trackOpen(server, event);
    server.on(event, (socket: Socket) => {
      useLingeringClose(socket);
      reading.track(socket, clientOf(socket, trustedProxies));
    });
  }

  /** Lets clients of plain HTTP begin with HTTP/2. */
  acceptPriorKnowledge(): void {
    this.#firstBytes = new FirstBytes(this.#server, {
      offered: () => this.#http2.offered,
      headerMs: () => this.#options.timeouts.header,
      accept: (socket) => this.#http2.accept(socket),
    });
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

  change({ tls, http2, limits, timeouts }: ListenChanges): void {
    const server = this.#server;
    this.#http2.change({ offered: http2, limits, timeouts });
    if (tls !== undefined && server instanceof SecureServer) renewContext(server, tls);
    this.connectionLimits = { total: limits.connections, perClient: limits.connectionsPerAddress };
    setClientTimeouts(server, timeouts);
    server.setTimeout(timeouts.stall);
  }

  announceClose(): void {
    for (const response of this.#responses()) {
      if (!response.headersSent) response.shouldKeepAlive = false;
    }
    this.#http2.announceClose();
  }

  async close(): Promise<void> {
    await this.#sockets?.close();
  }

  closeIdle(): void {
    this.#server.closeIdleConnections();
    this.#firstBytes?.closeWaiting();
    this.#http2.close();
  }

  *requests(): Iterable<RequestUnderWay> {
    for (const response of this.#responses()) {
      const { permit, transfer } = response;
      // A WebSocket on an HTTP/2 stream is one of `Forwarder.openWebSockets`.
      if (permit !== undefined && transfer?.webSocket === undefined) yield { permit, response };
    }
  }

  *#responses(): Iterable<TrackedOutgoing> {
    for (const socket of this.#open) yield* responsesOn(socket);
  }

  refuseAll(): void {
    const { observer, realm } = this.#options;
    for (const socket of this.#open) {
      let refused = 0;
      for (const response of responsesOn(socket)) {
        if (!refuseUnderWay(response, "drain_timeout", realm())) continue;
        observer.requestRefused("drain_timeout");
        refused += 1;
      }
      if (refused === 0) socket.destroy();
    }
  }

  closeAll(): void {
    // Node's own `closeAllConnections` omits WebSockets, and connections with an unfinished TLS handshake.
    for (const socket of this.#connections) socket.destroy();
  }
}

/** Tracks the open sockets of this event; those of `secureConnection` wrap those of `connection`. */
function trackOpen(server: Server, event: "connection" | "secureConnection"): ReadonlySet<Socket> {
  const open = new Set<Socket>();
  server.on(event, (socket: Socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  return open;
}
