import type { ClientRequest, IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ProxyServer, ServerOptions } from "http-proxy-3";
import type { Observer } from "../core/observer.ts";
import type { Permit } from "../core/permit.ts";
import type { Transfer } from "../core/transfer.ts";
import type { ExchangeSettings } from "./exchange.ts";
import { failure, failureReason } from "./failures.ts";
import { handshakeAnswer, switchHeaders } from "./handshake.ts";
import { HandshakePlace } from "./handshake-place.ts";
import { OpenWebSocket } from "./open-websocket.ts";
import { passRefusal } from "./refused-upgrade.ts";
import { rewritePath } from "./rewrite.ts";
import type { TargetOrigin } from "./target.ts";
import type { Upstream } from "./upstreams.ts";

/** One permitted upgrade. */
export interface Carriage {
  readonly permit: Permit;
  readonly upstream: Upstream;
  readonly request: IncomingMessage;
  /** What the client sent behind its request already. */
  readonly head: Buffer;
  /** Writes to the request's socket, for a backend that refuses the upgrade. */
  readonly response: ServerResponse;
  readonly transfer: Transfer;
}

/** A handshake on its way to the backend. */
interface Handshake {
  readonly sent: ClientRequest;
  /** What http-proxy-3 does with a 101: writes it to the client, and pipes both sockets into each other. */
  readonly switchOver: (message: IncomingMessage, backend: Socket, head: NonSharedBuffer) => void;
}

/** The backend has switched protocols. */
interface Switched extends Pick<Handshake, "switchOver"> {
  readonly message: IncomingMessage;
  readonly socket: Socket;
  readonly head: NonSharedBuffer;
}

/**
 * WebSockets through http-proxy-3's `ws`, after our own authorisation. It copies the handshake and pipes the bytes; the
 * headers, the time limits, a backend's refusal and every error are ours.
 */
export class WebSockets {
  readonly #proxy: ProxyServer;
  readonly #settings: ExchangeSettings;
  readonly #observer: Pick<Observer, "webSocketOpened" | "webSocketClosed">;
  readonly #open = new Set<OpenWebSocket>();

  constructor(
    proxy: ProxyServer,
    settings: ExchangeSettings,
    observer: Pick<Observer, "webSocketOpened" | "webSocketClosed">,
  ) {
    this.#proxy = proxy;
    this.#settings = settings;
    this.#observer = observer;
    // Errors of the client's socket arrive here; each carriage learns of them by the socket's close.
    proxy.on("error", () => undefined);
  }

  /** See `Forwarder.upgrade`. */
  async carry(carriage: Carriage): Promise<number> {
    const { permit, upstream, request, transfer } = carriage;
    const { clock, observer } = this.#settings;
    const place = new HandshakePlace(carriage, clock);
    const target = await place.take();
    transfer.target = target.address;
    const started = clock.monotonic();
    let switched: Switched;
    try {
      request.headers = this.#handshakeHeaders(permit);
      request.url = pathOf(permit);
      const { sent, switchOver } = this.#begin(carriage, target.origin);
      const limitMs = upstream.options.websocket.handshake;
      const { message, socket, head } = await handshakeAnswer(sent, request.socket, limitMs);
      const elapsed = clock.monotonic() - started;
      transfer.answeredAfterMs = elapsed;
      observer.upstreamAnswered(upstream.name, message.statusCode ?? 0, elapsed / 1000);
      if (socket === undefined) return await passRefusal(carriage, message, place);
      switched = { message, socket, head, switchOver };
    } catch (error) {
      const reason = failureReason(error);
      observer.upstreamFailed(upstream.name, reason);
      throw failure(reason, error);
    } finally {
      place.release();
    }
    return this.#stayOpen(carriage, switched);
  }

  /** Those that are open. */
  get count(): number {
    return this.#open.size;
  }

  /** Asks every client to leave: close code 1001. */
  goingAway(): void {
    for (const webSocket of this.#open) webSocket.goingAway();
  }

  async #stayOpen(
    { permit, request, response, transfer, upstream }: Carriage,
    { message, socket: backend, head, switchOver }: Switched,
  ): Promise<number> {
    const { socket } = request;
    response.detachSocket(socket);
    message.headers = switchHeaders(message, permit.request.requestId);
    // http-proxy-3 writes the head as text; each character of it is a byte.
    socket.setDefaultEncoding("latin1");
    switchOver(message, backend, head);
    const webSocket = new OpenWebSocket(socket, backend, transfer, {
      idleMs: upstream.options.websocket.idle,
      until: endOf(permit),
      clock: this.#settings.clock,
    });
    this.#open.add(webSocket);
    this.#observer.webSocketOpened(permit.route.name);
    await webSocket.closed;
    this.#open.delete(webSocket);
    this.#observer.webSocketClosed(permit.route.name);
    return 101;
  }

  /** Has http-proxy-3 send the handshake, and takes over what it would do with errors and answers. */
  #begin({ request, head }: Carriage, origin: TargetOrigin): Handshake {
    let sent: ClientRequest | undefined;
    const capture = (outgoing: ClientRequest): void => {
      sent = outgoing;
      // http-proxy-3 reads the path as a URL and would mend it.
      outgoing.path = request.url ?? "/";
    };
    this.#proxy.once("proxyReqWs", capture);
    try {
      this.#proxy.ws(request, request.socket, head, optionsFor(origin));
    } finally {
      this.#proxy.off("proxyReqWs", capture);
    }
    const switchOver = sent?.listeners("upgrade")[0];
    if (sent === undefined || switchOver === undefined) throw new Error("no handshake was sent");
    for (const event of ["error", "response", "upgrade"]) sent.removeAllListeners(event);
    return { sent, switchOver };
  }

  #handshakeHeaders(permit: Permit): Record<string, string | string[]> {
    const fields = this.#settings.outgoing.headers(permit);
    const headers: Record<string, string | string[]> = Object.create(null);
    for (let i = 0; i + 1 < fields.length; i += 2) {
      const name = fields[i]?.toLowerCase() ?? "";
      const value = fields[i + 1] ?? "";
      const before = headers[name];
      headers[name] = before === undefined ? value : [before, value].flat();
    }
    headers["host"] = permit.request.authority;
    headers["connection"] = "Upgrade";
    headers["upgrade"] = "websocket";
    return headers;
  }
}

/** Where nobody was asked for a token, or the route is only watched, none ends. */
function endOf({ identity, route }: Permit): number {
  return route.mode === "monitor" ? Infinity : (identity?.acceptedUntil ?? Infinity);
}

function pathOf({ route, request }: Permit): string {
  const path = route.rewrite === undefined ? request.path : rewritePath(route, request);
  return path + request.query;
}

function optionsFor(origin: TargetOrigin): ServerOptions {
  const { protocol, hostname, port, socketPath, tls, serverName } = origin;
  return {
    target: {
      protocol,
      host: hostname,
      hostname,
      port,
      ...(socketPath === undefined ? {} : { socketPath }),
      ...(tls?.ca === undefined ? {} : { ca: tls.ca }),
      ...(tls?.cert === undefined ? {} : { cert: tls.cert }),
      ...(tls?.key === undefined ? {} : { key: tls.key }),
    },
    ssl: serverName === undefined ? {} : { servername: serverName },
    secure: true,
    toProxy: true,
    prependPath: false,
  };
}
