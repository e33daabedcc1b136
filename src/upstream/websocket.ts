import type { ClientRequest, IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ProxyServer, ServerOptions } from "http-proxy-3";
import { GateError } from "../core/errors.ts";
import type { Observer } from "../core/observer.ts";
import type { Permit } from "../core/permit.ts";
import type { Transfer } from "../core/transfer.ts";
import type { ExchangeSettings } from "./exchange.ts";
import { failure, failureReason } from "./failures.ts";
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
    const { permit, upstream, request, head, transfer } = carriage;
    const { socket } = request;
    const { clock, observer } = this.#settings;
    // As long as the handshake lasts it counts as a request: half-open upgrades are as bounded as these.
    const target = upstream.take() ?? (await upstream.wait(socket));
    if (target === undefined) throw new GateError("reset", { reason: "aborted" });
    transfer.target = target.address;
    const started = clock.monotonic();
    request.headers = this.#handshakeHeaders(permit);
    request.url = pathOf(permit);
    let backend: Socket;
    try {
      const handshake = this.#begin(request, socket, head, target.origin);
      const answer = await handshakeAnswer(handshake, socket, upstream.options.websocket.handshake);
      const elapsed = clock.monotonic() - started;
      transfer.answeredAfterMs = elapsed;
      observer.upstreamAnswered(upstream.name, answer.message.statusCode ?? 0, elapsed / 1000);
      if (answer.socket === undefined) return await passRefusal(carriage, answer.message);
      backend = answer.socket;
    } catch (error) {
      const reason = failureReason(error);
      observer.upstreamFailed(upstream.name, reason);
      throw failure(reason, error);
    } finally {
      upstream.release(target);
    }
    return this.#stayOpen(carriage, backend);
  }

  /** Asks every client to leave: close code 1001. */
  /** Those that are open. */
  get count(): number {
    return this.#open.size;
  }

  goingAway(): void {
    for (const webSocket of this.#open) webSocket.goingAway();
  }

  async #stayOpen(carriage: Carriage, backend: Socket): Promise<number> {
    const { permit, request, response, transfer, upstream } = carriage;
    const { socket } = request;
    response.detachSocket(socket);
    const webSocket = new OpenWebSocket(socket, backend, transfer, upstream.options.websocket.idle);
    this.#open.add(webSocket);
    this.#observer.webSocketOpened(permit.route.name);
    await webSocket.closed;
    this.#open.delete(webSocket);
    this.#observer.webSocketClosed(permit.route.name);
    return 101;
  }

  /** Has http-proxy-3 send the handshake, and takes over what it would do with errors and refusals. */
  #begin(
    request: IncomingMessage,
    socket: Socket,
    head: Buffer,
    origin: TargetOrigin,
  ): ClientRequest {
    let sent: ClientRequest | undefined;
    const capture = (outgoing: ClientRequest): void => {
      sent = outgoing;
      // http-proxy-3 reads the path as a URL and would mend it.
      outgoing.path = request.url ?? "/";
    };
    this.#proxy.once("proxyReqWs", capture);
    try {
      this.#proxy.ws(request, socket, head, optionsFor(origin));
    } finally {
      this.#proxy.off("proxyReqWs", capture);
    }
    if (sent === undefined) throw new Error("the handshake was not sent");
    sent.removeAllListeners("error").removeAllListeners("response");
    return sent;
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

/** A backend's word on the handshake: with a socket when it switched protocols. */
interface HandshakeAnswer {
  readonly message: IncomingMessage;
  readonly socket: Socket | undefined;
}

function handshakeAnswer(
  handshake: ClientRequest,
  client: Socket,
  limitMs: number,
): Promise<HandshakeAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<HandshakeAnswer>();
  const timer = setTimeout(() => {
    const connecting = handshake.socket?.connecting ?? true;
    handshake.destroy(new HandshakeTimeout(connecting));
  }, limitMs);
  const onClientGone = (): void => {
    handshake.destroy(new HandshakeAborted());
  };
  client.once("close", onClientGone);
  handshake
    .once("upgrade", (message, socket) => resolve({ message, socket }))
    .once("response", (message) => resolve({ message, socket: undefined }))
    // Before http-proxy-3 writes the switch to the client.
    .prependOnceListener("upgrade", (message) => cleanSwitch(message.headers))
    .on("error", reject);
  return promise.finally(() => {
    clearTimeout(timer);
    client.off("close", onClientGone);
  });
}

/** Of the backend's 101 only what belongs to the switch and end-to-end headers go on. */
function cleanSwitch(headers: IncomingMessage["headers"]): void {
  for (const name of ["keep-alive", "transfer-encoding", "content-length", "trailer", "te"]) {
    delete headers[name];
  }
  for (const name of Object.keys(headers)) if (name.startsWith("proxy-")) delete headers[name];
  headers.connection = "Upgrade";
}

/** The backend did not answer the handshake in time. */
class HandshakeTimeout extends Error {
  readonly code: string;

  constructor(connecting: boolean) {
    super("the backend did not answer the handshake in time");
    this.name = "HandshakeTimeout";
    this.code = connecting ? "UND_ERR_CONNECT_TIMEOUT" : "UND_ERR_HEADERS_TIMEOUT";
  }
}

/** The client left during the handshake. */
class HandshakeAborted extends Error {
  readonly code = "UND_ERR_ABORTED";

  constructor() {
    super("the client left during the handshake");
    this.name = "HandshakeAborted";
  }
}
