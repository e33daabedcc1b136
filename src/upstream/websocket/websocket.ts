import type { ClientRequest, IncomingMessage as Message } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import httpProxy, { type ServerOptions } from "http-proxy-3";
import { GateError } from "../../core/request/errors.ts";
import type { Permit } from "../../core/request/permit.ts";
import { IncomingMessage } from "../../lib/http/node-http.ts";
import { failure, failureReason } from "../http/failures.ts";
import { HandshakeClient, handshakeResponse } from "./handshake.ts";
import { OpenWebSocket } from "./open-websocket.ts";
import { pathOf, type UpgradeContext } from "../http/dispatch.ts";
import { answeredProtocol, backendHost } from "../headers/rewrite.ts";
import { whereToRetry } from "../http/repetition.ts";
import { Slot } from "../pool/slot.ts";
import type { Target } from "../pool/target.ts";
import { type TargetOrigin, tlsOptionsOf } from "../pool/target-origin.ts";
import type { TunnelStream } from "../../core/request/http-message.ts";
import { clientFields, headersOf, mayEndWithTrailers } from "../headers/incoming-headers.ts";
import type { BufferHolder } from "../../core/request/transfer.ts";

/** A backend that has switched protocols. */
interface Switched {
  readonly origin: TargetOrigin;
  readonly message: Message;
  readonly socket: Socket;
}

/** How long a stream stays open after the backend has closed, if the client does not end it, in milliseconds. */
const AFTER_BACKEND_MS = 1_000;
const PROTOCOL = "sec-websocket-protocol";
/** HTTP/2 has its own handshake (RFC 8441 §5). */
const ACCEPT = "sec-websocket-accept";
const NO_HTTP1 = "The service behind this address takes no WebSockets over HTTP/1.1";

/**
 * Tells the client that the WebSocket is open, and pipes both ends into each other.
 *
 * @returns the status that the client gets.
 */
export function switchProtocols(
  context: UpgradeContext,
  { message, socket: backend, origin }: Switched,
): number {
  const fields = switchingFields(message, context.permit, origin);
  backend.setTimeout(0);
  backend.setNoDelay(true).setKeepAlive(true);
  const { stream } = context;
  return stream === undefined
    ? openConnection(context, backend, fields)
    : openStream(stream, backend, fields);
}

function openConnection(
  { request: { socket }, response }: UpgradeContext,
  backend: Socket,
  fields: readonly string[],
): number {
  response.sendDate = false;
  response.writeHead(101, [...fields, "Connection", "Upgrade", "Upgrade", "websocket"]);
  response.flushHeaders();
  response.detachSocket?.(socket);
  socket.setTimeout(0);
  socket.setKeepAlive(true);
  backend.once("close", () => socket.end());
  backend.pipe(socket).pipe(backend);
  return 101;
}

function openStream(stream: TunnelStream, backend: Socket, fields: readonly string[]): number {
  const { duplex } = stream;
  const status = stream.open(fields.filter((_, i) => fields[i - (i % 2)] !== ACCEPT));
  backend.once("close", () => {
    duplex.end();
    if (!duplex.destroyed) setTimeout(() => stream.abort(), AFTER_BACKEND_MS).unref();
  });
  backend.pipe(duplex).pipe(backend);
  return status;
}

/** Returns the fields for the client. */
function switchingFields({ headers }: Message, permit: Permit, origin: TargetOrigin): string[] {
  const fields = clientFields(headers, permit, 101, origin);
  const protocol = headers[PROTOCOL] === undefined ? answeredProtocol(permit) : undefined;
  if (protocol !== undefined) fields.push(PROTOCOL, protocol);
  return fields;
}

/**
 * Forwards the response of a backend that refuses the upgrade. Resolves with its status when the client has received
 * it or is gone. Closes both connections if no byte of the body moves in either direction for `timeouts.idle`.
 *
 * @param slot released as soon as the response has arrived.
 * @param backendIdle called if the backend stopped sending.
 */
function forwardRefusal(
  context: UpgradeContext,
  message: Message,
  slot: Slot,
  backendIdle: () => void,
): Promise<number> {
  const { response, permit, transfer, upstream } = context;
  const { statusCode: status = 502, statusMessage = "", headers } = message;
  const { promise, resolve } = Promise.withResolvers<number>();
  const end = (): void => void response.destroy();
  const idle = setTimeout(() => {
    transfer.abortReason = response.writableNeedDrain ? "slow_client" : "idle_timeout";
    if (!response.writableNeedDrain) backendIdle();
    end();
  }, permit.route.timeouts?.idle ?? upstream.options.timeouts.idle);
  if (!mayEndWithTrailers(response, status)) delete headers["trailer"];
  response.writeHead(status, statusMessage, [
    ...clientFields(headers, permit, status, slot.target?.origin, transfer.cors?.backend),
    ...["Connection", "close"],
  ]);
  message.on("data", (chunk: Buffer) => {
    if (!response.write(chunk)) message.pause();
    transfer.bytesOut += chunk.length;
    idle.refresh();
    if (response.writableNeedDrain) slot.readStalled(transfer.bytesOut);
  });
  message.on("error", end).on("aborted", end);
  message.on("end", () => {
    slot.release();
    response.end();
  });
  response.on("drain", () => {
    slot.readResumed();
    message.resume();
  });
  response.once("close", () => {
    clearTimeout(idle);
    message.destroy();
    resolve(status);
  });
  return promise;
}

/** The client's end of a WebSocket: its connection, or its HTTP/2 stream. */
export interface ClientEnd {
  /** The bytes of both directions. */
  readonly duplex: Duplex;
  /** The connection, which other streams may share. */
  readonly connection: Socket;
  /** Ends it at once. */
  abort(): void;
  /** Counts what is buffered for it. */
  holds(holder: BufferHolder): void;
}

function clientEndOf({ request, stream, transfer, settings }: UpgradeContext): ClientEnd {
  const { socket } = request;
  if (stream !== undefined) {
    return {
      duplex: stream.duplex,
      connection: socket,
      abort: () => stream.abort(),
      // The connection counts what its streams hold.
      holds: (holder) => void (transfer.holder = holder),
    };
  }
  return {
    duplex: socket,
    connection: socket,
    abort: () => void socket.destroy(),
    holds: (holder) => settings.buffered.track(socket, holder),
  };
}

/** `HandshakeClient` keeps the data that arrives with the handshake. */
const NOTHING = Buffer.alloc(0);

/**
 * Tunnels WebSockets after authorization. http-proxy-3 sends the handshake; headers, time limits, refusals, errors and the
 * bytes are handled here.
 */
export class WebSockets {
  readonly open = new Set<OpenWebSocket>();
  /** Errors of the client's socket arrive here; each tunnel learns of them when the socket closes. */
  readonly #proxy = httpProxy.createProxyServer().on("error", () => undefined);

  /** See `Forwarder.upgrade`. */
  async tunnel(context: UpgradeContext): Promise<number> {
    const end = clientEndOf(context);
    const client = new HandshakeClient(end, context.head);
    end.holds(client);
    context.transfer.exchange = client;
    const answer = await this.#shakeHands(context, client).finally(() => client.handOver());
    return typeof answer === "number" ? answer : this.#keepOpen(context, end, answer);
  }

  /**
   * Performs the handshake.
   *
   * @returns the switched connection, or the status of a refusal that was forwarded.
   */
  async #shakeHands(context: UpgradeContext, client: HandshakeClient): Promise<Switched | number> {
    const { permit, upstream, response, transfer } = context;
    const { clock, observer } = context.settings;
    const slot = new Slot(context);
    let retries = 0;
    let avoid: Target | undefined;
    for (;;) {
      const target = slot.take(avoid) ?? (await slot.wait(client));
      if (target === undefined) {
        throw client.refusal ?? new GateError("reset", { reason: "aborted" });
      }
      transfer.target = target.address;
      const started = clock.monotonic();
      try {
        return await this.#attempt(context, client, slot, target, retries);
      } catch (error) {
        if (client.refusal !== undefined) throw client.refusal;
        const reason = failureReason(error);
        // So a backend that speaks only HTTP/2 reacts to an HTTP/1.1 handshake.
        const isOther =
          upstream.speaksHttp2 && (reason === "reset" || reason === "invalid_response");
        const failed = isOther
          ? new GateError(reason, { reason, cause: error, message: NO_HTTP1 })
          : failure(reason, error);
        // A handshake whose response has begun is not retried. A backend that speaks only HTTP/2 still serves other
        // requests.
        const where =
          response.headersSent || (isOther && reason === "invalid_response")
            ? undefined
            : whereToRetry(
                // A handshake has no body, so it can be sent again.
                { permit, upstream, target, retries, isReplayable: true },
                ...[failed, isOther, started],
              );
        if (where === undefined) {
          observer.upstreamFailed(upstream.name, reason);
          throw failed;
        }
        retries += 1;
        observer.upstreamRetried(upstream.name);
        avoid = target;
      } finally {
        slot.release();
      }
    }
  }

  /** Performs the handshake with one target. */
  async #attempt(
    context: UpgradeContext,
    client: HandshakeClient,
    slot: Slot,
    target: Target,
    retries: number,
  ): Promise<Switched | number> {
    const { upstream, transfer } = context;
    const { clock, observer } = context.settings;
    const started = clock.monotonic();
    const sent = this.#begin(context, target.origin, retries);
    const limitMs = upstream.options.websocket.handshake;
    const { message, socket } = await handshakeResponse(sent, client, limitMs);
    target.answeredAt = clock.monotonic();
    const elapsed = target.answeredAt - started;
    transfer.upstreamHeaderMs = elapsed;
    observer.upstreamAnswered(upstream.name, message.statusCode ?? 0, elapsed / 1000);
    upstream.states?.answered(target, message.statusCode ?? 0);
    if (socket === undefined) {
      return await forwardRefusal(context, message, slot, () => {
        observer.upstreamFailed(upstream.name, "idle_timeout");
      });
    }
    return { message, socket, origin: target.origin };
  }

  async #keepOpen(context: UpgradeContext, end: ClientEnd, switched: Switched): Promise<number> {
    const { permit, transfer, settings } = context;
    const status = switchProtocols(context, switched);
    const webSocket = new OpenWebSocket(context, end, switched.socket);
    this.open.add(webSocket);
    transfer.webSocket = webSocket;
    settings.observer.webSocketOpened(permit.route.name);
    await webSocket.closed;
    this.open.delete(webSocket);
    settings.observer.webSocketClosed(permit.route.name);
    return status;
  }

  /**
   * Makes http-proxy-3 send the handshake. It would answer the client and pipe the sockets before the response is checked, so it
   * gets a socket that leads nowhere, and its listeners go. The owner of the project chose this library; `node:http` alone would
   * do here.
   */
  #begin(
    { permit, settings }: UpgradeContext,
    origin: TargetOrigin,
    retries: number,
  ): ClientRequest {
    let sent: ClientRequest | undefined;
    const nowhere = new Socket();
    const handshake = new IncomingMessage(nowhere);
    handshake.method = "GET";
    handshake.url = pathOf(permit);
    handshake.headers = Object.assign(headersOf(settings.outgoing.headers(permit, retries)), {
      host: backendHost(permit, origin),
      connection: "Upgrade",
      upgrade: "websocket",
    });
    const capture = (outgoing: ClientRequest): void => {
      sent = outgoing;
      // http-proxy-3 drops an empty query.
      outgoing.path = handshake.url ?? "/";
    };
    this.#proxy.once("proxyReqWs", capture);
    try {
      this.#proxy.ws(handshake, nowhere, NOTHING, optionsFor(origin));
    } finally {
      this.#proxy.off("proxyReqWs", capture);
      // It counts sockets until they close.
      nowhere.destroy();
    }
    if (sent === undefined) throw new Error("no handshake was sent");
    for (const event of ["error", "response", "upgrade"]) sent.removeAllListeners(event);
    return sent;
  }
}

function optionsFor(origin: TargetOrigin): ServerOptions {
  const { servername, ...tls } = tlsOptionsOf(origin);
  const { protocol, hostname, port, socketPath } = origin;
  return {
    target: {
      protocol,
      host: hostname,
      hostname,
      port,
      ...(socketPath === undefined ? {} : { socketPath }),
      ...tls,
    },
    ssl: { servername },
    secure: true,
    toProxy: true,
    prependPath: false,
  };
}
