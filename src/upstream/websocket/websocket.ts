import type { ClientRequest } from "node:http";
import { Socket } from "node:net";
import type { ProxyServer, ServerOptions } from "http-proxy-3";
import { GateError } from "../../core/request/errors.ts";
import type { Observer } from "../../core/observer.ts";
import type { UpstreamErrorReason } from "../../core/request/outcome.ts";
import type { Permit } from "../../core/request/permit.ts";
import { IncomingMessage } from "../../lib/http/node-http.ts";
import { failure, failureReason } from "../http/failures.ts";
import { HandshakeClient, handshakeResponse } from "./handshake.ts";
import { OpenWebSocket } from "./open-websocket.ts";
import { type ForwardingSettings, pathOf, type UpgradeContext } from "../http/dispatch.ts";
import {
  type ClientEnd,
  clientEndOf,
  forwardRefusal,
  type Switched,
  switchProtocols,
} from "./switch-protocols.ts";
import { backendHost } from "../headers/rewrite.ts";
import { whereToRetry } from "../http/repetition.ts";
import { Slot } from "../pool/slot.ts";
import type { Target } from "../pool/target.ts";
import { type TargetOrigin, tlsOptionsOf } from "../pool/target-origin.ts";
import { callEach } from "../../lib/async/isolation.ts";

/** `HandshakeClient` keeps the data that arrives with the handshake. */
const NOTHING = Buffer.alloc(0);

/**
 * Tunnels WebSockets after authorization. http-proxy-3 sends the handshake; headers, time limits, refusals, errors and the
 * bytes are handled here.
 */
export class WebSockets {
  readonly #proxy: ProxyServer;
  readonly #settings: ForwardingSettings;
  readonly #observer: Pick<Observer, "webSocketOpened" | "webSocketClosed">;
  readonly #open = new Set<OpenWebSocket>();

  constructor(
    proxy: ProxyServer,
    settings: ForwardingSettings,
    observer: Pick<Observer, "webSocketOpened" | "webSocketClosed">,
  ) {
    this.#proxy = proxy;
    this.#settings = settings;
    this.#observer = observer;
    // Errors of the client's socket arrive here; each tunnel learns of them when the socket closes.
    proxy.on("error", () => undefined);
  }

  /** See `Forwarder.upgrade`. */
  async tunnel(context: UpgradeContext): Promise<number> {
    const end = clientEndOf(context, context.transfer, this.#settings.buffered);
    const client = new HandshakeClient(end, context.head);
    end.holds(client);
    context.transfer.exchange = client;
    const answer = await this.#shakeHands(context, client).finally(() => client.handOver());
    return typeof answer === "number" ? answer : this.#keepOpen(context, end, answer);
  }

  /** The number of open WebSockets. */
  get count(): number {
    return this.#open.size;
  }

  open(): Iterable<OpenWebSocket> {
    return this.#open;
  }

  /** Closes every WebSocket with 1001. */
  sendGoingAway(): void {
    callEach(this.#open, (webSocket) => webSocket.sendGoingAway());
  }

  /**
   * Performs the handshake.
   *
   * @returns the switched connection, or the status of a refusal that was forwarded.
   */
  async #shakeHands(context: UpgradeContext, client: HandshakeClient): Promise<Switched | number> {
    const { permit, upstream, response, transfer } = context;
    const { clock, observer } = this.#settings;
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
        return await this.#attempt(context, client, slot, target);
      } catch (error) {
        if (client.refusal !== undefined) throw client.refusal;
        const reason = failureReason(error);
        const isOther = upstream.speaksHttp2 && isOtherProtocol(reason);
        const failed = isOther ? noHttp1(reason, error) : failure(reason, error);
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
  ): Promise<Switched | number> {
    const { upstream, transfer } = context;
    const { clock, observer } = this.#settings;
    const started = clock.monotonic();
    const sent = this.#begin(context, target.origin);
    const limitMs = upstream.options.websocket.handshake;
    const { message, socket, head } = await handshakeResponse(sent, client, limitMs);
    const elapsed = clock.monotonic() - started;
    transfer.upstreamHeaderMs = elapsed;
    observer.upstreamAnswered(upstream.name, message.statusCode ?? 0, elapsed / 1000);
    upstream.states?.answered(target, message.statusCode ?? 0);
    if (socket === undefined) {
      return await forwardRefusal(context, message, slot, () => {
        observer.upstreamFailed(upstream.name, "idle_timeout");
      });
    }
    return { message, socket, head, origin: target.origin };
  }

  async #keepOpen(context: UpgradeContext, end: ClientEnd, switched: Switched): Promise<number> {
    const { permit, transfer, upstream } = context;
    const status = switchProtocols(context, switched);
    const ends = { client: end, backend: switched.socket, transfer, permit };
    const webSocket = new OpenWebSocket(ends, {
      idleMs: upstream.options.websocket.idle,
      buffered: this.#settings.buffered,
      reading: this.#settings.reading,
    });
    this.#open.add(webSocket);
    transfer.webSocket = webSocket;
    this.#observer.webSocketOpened(permit.route.name);
    await webSocket.closed;
    this.#open.delete(webSocket);
    this.#observer.webSocketClosed(permit.route.name);
    return status;
  }

  /**
   * Makes http-proxy-3 send the handshake. It would answer the client and pipe the sockets before the response is checked, so it
   * gets a socket that leads nowhere, and its listeners go. The owner of the project chose this library; `node:http` alone would
   * do here.
   */
  #begin({ permit }: UpgradeContext, origin: TargetOrigin): ClientRequest {
    let sent: ClientRequest | undefined;
    const nowhere = new Socket();
    const handshake = new IncomingMessage(nowhere);
    handshake.method = "GET";
    handshake.url = pathOf(permit);
    handshake.headers = this.#handshakeHeaders(permit, origin);
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

  #handshakeHeaders(permit: Permit, origin: TargetOrigin): Record<string, string | string[]> {
    const fields = this.#settings.outgoing.headers(permit);
    const headers: Record<string, string | string[]> = Object.create(null);
    for (let i = 0; i + 1 < fields.length; i += 2) {
      const name = fields[i]?.toLowerCase() ?? "";
      const value = fields[i + 1] ?? "";
      const before = headers[name];
      if (Array.isArray(before)) before.push(value);
      else headers[name] = before === undefined ? value : [before, value];
    }
    headers["host"] = backendHost(permit, origin);
    headers["connection"] = "Upgrade";
    headers["upgrade"] = "websocket";
    return headers;
  }
}

/** How a backend that speaks only HTTP/2 reacts to an HTTP/1.1 handshake. */
function isOtherProtocol(reason: UpstreamErrorReason): reason is "reset" | "invalid_response" {
  return reason === "reset" || reason === "invalid_response";
}

function noHttp1(reason: "reset" | "invalid_response", cause: unknown): GateError {
  const message = "The service behind this address takes no WebSockets over HTTP/1.1";
  return new GateError(reason, { reason, cause, message });
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
