import type { IncomingMessage, ServerResponse } from "node:http";
import httpProxy, { type ProxyServer, type ServerOptions } from "http-proxy-3";
import { GateError } from "../core/errors.ts";
import type { Forwarder } from "../core/forwarder.ts";
import type { Observer } from "../core/observer.ts";
import type { Permit } from "../core/permit.ts";
import type { Tracing } from "../core/tracing.ts";
import type { Transfer } from "../core/transfer.ts";
import type { Clock } from "../lib/clock.ts";
import { Exchange, type ExchangeSettings } from "./exchange.ts";
import type { IdentityHeaderNames } from "./identity-headers.ts";
import { createOutgoingHeaders } from "./outgoing-headers.ts";
import { tracedHeaders } from "./traced-headers.ts";
import type { Upstream } from "./upstreams.ts";
import { WebSockets } from "./websocket.ts";
import { YoungCollection } from "./young-collection.ts";

export interface ForwarderOptions {
  /** By their names. They are others' to close. */
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly identityHeaders: IdentityHeaderNames;
  /** The largest body of a request in bytes; Infinity for none. */
  readonly bodyBytes: number;
  readonly clock: Clock;
  readonly observer: Pick<
    Observer,
    "upstreamAnswered" | "upstreamFailed" | "webSocketOpened" | "webSocketClosed"
  >;
  /** Undefined where tracing is off. */
  readonly tracing?: Pick<Tracing, "dispatched"> | undefined;
}

/** What travels through http-proxy-3 to our pass. */
interface Carried extends ServerOptions {
  readonly exchange: Exchange;
}

function isCarried(options: object): options is Carried {
  return "exchange" in options && options.exchange instanceof Exchange;
}

/** @returns the forwarder over pools of kept-alive connections, one pool for each target. */
export function createForwarder(options: ForwarderOptions): Forwarder {
  return new PoolForwarder(options);
}

/**
 * http-proxy-3 with a pass of ours before all of its own: theirs smuggle requests (a DELETE or OPTIONS loses its framing
 * but not its body) and cost three times as much. Ours ends the chain, so no request ever reaches theirs.
 */
class PoolForwarder implements Forwarder {
  readonly #proxy: ProxyServer;
  readonly #upstreams: ReadonlyMap<string, Upstream>;
  readonly #settings: ExchangeSettings;
  readonly #webSockets: WebSockets;

  constructor(options: ForwarderOptions) {
    const { bodyBytes, clock, observer } = options;
    const outgoing = tracedHeaders(createOutgoingHeaders(options.identityHeaders), options.tracing);
    this.#settings = { outgoing, bodyBytes, clock, observer, young: new YoungCollection() };
    this.#upstreams = options.upstreams;
    this.#proxy = httpProxy.createProxyServer({ target: new URL("http://target.invalid") });
    this.#proxy.before("web", "deleteLength", (_request, _response, passed) => {
      if (isCarried(passed)) passed.exchange.start();
      return true;
    });
    this.#webSockets = new WebSockets(this.#proxy, this.#settings, observer);
  }

  forward(
    permit: Permit,
    request: IncomingMessage,
    response: ServerResponse,
    transfer: Transfer,
  ): Promise<void> {
    const upstream = this.#upstreamOf(permit, transfer);
    const exchange = new Exchange(this.#settings, permit, upstream, request, response, transfer);
    const carried: Carried = { exchange };
    this.#proxy.web(request, response, carried);
    return exchange.completed;
  }

  async upgrade(
    permit: Permit,
    request: IncomingMessage,
    head: Buffer,
    response: ServerResponse,
    transfer: Transfer,
  ): Promise<number> {
    const upstream = this.#upstreamOf(permit, transfer);
    return this.#webSockets.carry({ permit, upstream, request, head, response, transfer });
  }

  webSockets(): number {
    return this.#webSockets.count;
  }

  closeWebSockets(): void {
    this.#webSockets.goingAway();
  }

  #upstreamOf(permit: Permit, transfer: Transfer): Upstream {
    const upstream = this.#upstreams.get(permit.route.upstream);
    if (upstream === undefined) throw new GateError("internal", { reason: "no_upstream" });
    transfer.upstream = upstream.name;
    return upstream;
  }
}
