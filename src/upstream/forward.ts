import httpProxy from "http-proxy-3";
import type { BufferedBytes } from "../core/buffered-bytes.ts";
import type { ClientReading, OpenStream, Transfer } from "../core/request/transfer.ts";
import { GateError } from "../core/request/errors.ts";
import type { AssertionSource, Forwarder, UpgradeRequest } from "../core/request/gate.ts";
import type { IncomingRequest, OutgoingResponse } from "../core/request/http-message.ts";
import type { Observer } from "../core/observer.ts";
import type { Permit } from "../core/request/permit.ts";
import type { Tracing } from "../core/tracing.ts";
import type { Clock } from "../lib/clock.ts";
import { withinDeadline } from "./grpc/deadline.ts";
import { Exchange } from "./http/exchange.ts";
import {
  createOutgoingHeaders,
  type HeaderSettings,
  tracedHeaders,
} from "./headers/outgoing-headers.ts";
import type { ForwardingSettings } from "./http/dispatch.ts";
import { Mirrors } from "./mirror/mirrors.ts";
import type { Upstream } from "./pool/upstreams.ts";
import { WebSockets } from "./websocket/websocket.ts";

export interface ForwarderOptions extends HeaderSettings {
  /** The upstreams by name. The caller closes them. */
  readonly upstreams: ReadonlyMap<string, Upstream>;
  /** What signs assertions, if they are configured. */
  readonly assertions?: AssertionSource | undefined;
  readonly buffered: BufferedBytes;
  readonly reading: ClientReading;
  readonly clock: Clock;
  readonly observer: Pick<
    Observer,
    | "upstreamAnswered"
    | "upstreamFailed"
    | "upstreamRetried"
    | "requestMirrored"
    | "webSocketOpened"
    | "webSocketClosed"
  >;
  /** Undefined if tracing is off. */
  readonly tracing?: Pick<Tracing, "dispatched"> | undefined;
}

/** Creates a forwarder over pools of keep-alive connections, one pool per target. */
export function createForwarder(options: ForwarderOptions): Forwarder {
  return new PoolForwarder(options);
}

/**
 * Forwards requests over connections of its own, and WebSockets through http-proxy-3. The latter's request passes are not used:
 * they allow smuggling (a DELETE or OPTIONS loses its framing but not its body), and cost three times as much.
 */
class PoolForwarder implements Forwarder {
  readonly #upstreams: ReadonlyMap<string, Upstream>;
  readonly #settings: ForwardingSettings;
  readonly #webSockets: WebSockets;
  readonly #mirrors: Mirrors;

  constructor(options: ForwarderOptions) {
    const { buffered, reading, clock, observer } = options;
    const outgoing = tracedHeaders(
      createOutgoingHeaders(options, options.assertions),
      options.tracing,
    );
    this.#settings = { outgoing, buffered, reading, clock, observer };
    this.#upstreams = options.upstreams;
    this.#mirrors = new Mirrors(options.upstreams, this.#settings, observer);
    this.#webSockets = new WebSockets(httpProxy.createProxyServer(), this.#settings, observer);
  }

  forward(
    permit: Permit,
    request: IncomingRequest,
    response: OutgoingResponse,
    transfer: Transfer,
  ): Promise<void> {
    const settings = this.#settings;
    const upstream = this.#upstreamOf(permit, transfer);
    const { mirror } = permit.route;
    const copy = mirror && this.#mirrors.copyOf(permit, mirror);
    const permitted = { settings, permit, upstream, request, response, transfer, copy };
    const forwarded = new Exchange(permitted).start();
    const ended = copy ? forwarded.finally(() => copy.drop("body_incomplete")) : forwarded;
    return upstream.speaksHttp2 ? withinDeadline(ended, permitted) : ended;
  }

  async upgrade(permit: Permit, upgrade: UpgradeRequest, transfer: Transfer): Promise<number> {
    const upstream = this.#upstreamOf(permit, transfer);
    return this.#webSockets.tunnel({
      settings: this.#settings,
      permit,
      upstream,
      transfer,
      ...upgrade,
    });
  }

  webSockets(): number {
    return this.#webSockets.count;
  }

  openWebSockets(): Iterable<OpenStream> {
    return this.#webSockets.open();
  }

  closeWebSockets(): void {
    this.#webSockets.sendGoingAway();
  }

  #upstreamOf(permit: Permit, transfer: Transfer): Upstream {
    const upstream = this.#upstreams.get(permit.route.upstream);
    if (upstream === undefined) throw new GateError("internal", { reason: "no_upstream" });
    transfer.upstream = upstream.name;
    return upstream;
  }
}
