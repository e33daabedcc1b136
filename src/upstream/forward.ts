import type { OpenWebSocket } from "./websocket/open-websocket.ts";
import type { Transfer } from "../core/request/transfer.ts";
import { GateError } from "../core/request/errors.ts";
import type { Assertions } from "../tokens/assertion/assertions.ts";
import type {
  IncomingRequest,
  OutgoingResponse,
  UpgradeRequest,
} from "../core/request/http-message.ts";
import type { Permit } from "../core/request/permit.ts";
import type { Tracing } from "../observe/tracing/opentelemetry.ts";
import { withinDeadline } from "./grpc/deadline.ts";
import { Exchange } from "./http/exchange.ts";
import { createOutgoingHeaders, type HeaderSettings } from "./headers/outgoing-headers.ts";
import type { ForwardingSettings } from "./http/dispatch.ts";
import { Mirrors } from "./mirror/mirrors.ts";
import type { Upstream } from "./pool/upstreams.ts";
import { WebSockets } from "./websocket/websocket.ts";

interface ForwarderOptions extends HeaderSettings, Omit<ForwardingSettings, "outgoing"> {
  /** The upstreams by name. The caller closes them. */
  readonly upstreams: ReadonlyMap<string, Upstream>;
  /** What signs assertions, if they are configured. */
  readonly assertions?: Assertions | undefined;
  /** Undefined if tracing is off. */
  readonly tracing?: Pick<Tracing, "dispatched"> | undefined;
}

/**
 * Forwards requests to the backends. It requires a permit, so a forgotten check does not compile.
 *
 * Requests go over keep-alive connections of its own, one pool per target, and WebSockets through http-proxy-3. The latter's request passes are not used:
 * they allow smuggling (a DELETE or OPTIONS loses its framing but not its body), and cost three times as much.
 */
export class Forwarder {
  readonly #upstreams: ReadonlyMap<string, Upstream>;
  readonly #settings: ForwardingSettings;
  readonly #webSockets = new WebSockets();
  readonly #mirrors: Mirrors;

  constructor(options: ForwarderOptions) {
    const { buffered, reading, clock, observer, assertions, tracing } = options;
    const outgoing = createOutgoingHeaders(options, assertions, tracing);
    this.#settings = { outgoing, buffered, reading, clock, observer };
    this.#upstreams = options.upstreams;
    this.#mirrors = new Mirrors(options.upstreams, this.#settings);
  }

  /**
   * Streams the request to the backend and the response to the client, both with back-pressure.
   *
   * Resolves when the response is complete or the client has disconnected. If the backend aborts the response midway,
   * destroys the client's connection, sets `transfer.abortReason` and resolves. Throws or rejects with a GateError
   * about the backend (502, 503, 504) or the body (413) if nothing has been sent to the client yet.
   */
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

  /**
   * Tunnels a WebSocket. Resolves when both sides are closed, with the status sent to the client: 101, 200 over
   * HTTP/2, or the status of the backend's refusal, which goes out through `response`.
   *
   * @throws GateError about the backend if nothing has been sent to the client yet.
   */
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

  get openWebSockets(): Iterable<OpenWebSocket> {
    return this.#webSockets.open;
  }

  #upstreamOf(permit: Permit, transfer: Transfer): Upstream {
    const upstream = this.#upstreams.get(permit.route.upstream);
    if (upstream === undefined) throw new GateError("internal", { reason: "no_upstream" });
    transfer.upstream = upstream.name;
    return upstream;
  }
}
