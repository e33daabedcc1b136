import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { GateError } from "../core/errors.ts";
import type { Observer } from "../core/observer.ts";
import type { UpstreamErrorReason } from "../core/outcome.ts";
import type { Permit } from "../core/permit.ts";
import type { Transfer } from "../core/transfer.ts";
import type { Clock } from "../lib/clock.ts";
import { tellToContinue } from "../lib/continue.ts";
import { type Body, dispatchOf, isRepeatable } from "./dispatch.ts";
import { upstreamReason } from "./failures.ts";
import type { OutgoingHeaders } from "./outgoing-headers.ts";
import { Relay, type RelayEvents } from "./relay.ts";
import { type BodyEvents, RequestBody } from "./request-body.ts";
import { endWithTrailers } from "./request-trailers.ts";
import { isSmallBody, takeSmallBody } from "./small-body.ts";
import type { Holder } from "./slow-holders.ts";
import type { Target } from "./target.ts";
import type { Upstream } from "./upstreams.ts";
import type { YoungCollection } from "./young-collection.ts";

/** What all exchanges of a gate share. */
export interface ExchangeSettings {
  readonly outgoing: OutgoingHeaders;
  /** The largest body of a request in bytes; Infinity for none. */
  readonly bodyBytes: number;
  readonly young: YoungCollection;
  readonly clock: Clock;
  readonly observer: Pick<Observer, "upstreamAnswered" | "upstreamFailed">;
}

/** One permitted request and its answer, over one connection or, where that turned out to be stale, two. */
export class Exchange implements RelayEvents, BodyEvents, Holder {
  readonly client: string;
  readonly #settings: ExchangeSettings;
  readonly #permit: Permit;
  readonly #upstream: Upstream;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #transfer: Transfer;
  /** The client has been told to send its body. */
  #continued = false;
  /** Of the attempt that is under way. */
  #target: Target | undefined;
  #body: Body;
  #started = 0;
  #repeated = false;
  /** What stands still because of the client: the answer until it reads, the request until it sends. */
  #unread = false;
  #unsent = false;
  #gaveWay = false;
  readonly #completion = Promise.withResolvers<void>();

  constructor(
    settings: ExchangeSettings,
    permit: Permit,
    upstream: Upstream,
    request: IncomingMessage,
    response: ServerResponse,
    transfer: Transfer,
  ) {
    this.client = permit.request.network;
    this.#settings = settings;
    this.#permit = permit;
    this.#upstream = upstream;
    this.#request = request;
    this.#response = response;
    this.#transfer = transfer;
  }

  /** Resolves and rejects as `Forwarder.forward` does. */
  get completed(): Promise<void> {
    return this.#completion.promise;
  }

  /** Begins. Never throws: what goes wrong rejects `completed`. */
  start(): void {
    const { bodyLength, expectsContinue } = this.#permit.request;
    try {
      if (bodyLength > this.#bodyLimit) {
        throw new GateError("body_too_large", { reason: "body_too_large" });
      }
      if (isSmallBody(bodyLength) && !expectsContinue) this.#sendWhole();
      else this.#send(bodyLength === 0 ? undefined : this.#stream());
    } catch (error) {
      this.#completion.reject(error);
    }
  }

  get #bodyLimit(): number {
    return this.#permit.route.bodyBytes ?? this.#settings.bodyBytes;
  }

  sentOn(socket: Socket): void {
    // The client's trailers follow a chunked body.
    if (this.#permit.request.bodyLength !== -1) return;
    endWithTrailers(socket, () => this.#settings.outgoing.trailers(this.#request.rawTrailers));
  }

  answered(status: number): void {
    const { clock, observer } = this.#settings;
    const elapsed = clock.monotonic() - this.#started;
    this.#transfer.answeredAfterMs = elapsed;
    observer.upstreamAnswered(this.#upstream.name, status, elapsed / 1000);
  }

  moved(bytes: number): void {
    this.#transfer.bytesOut += bytes;
    this.#settings.young.passed(bytes);
  }

  held(): void {
    this.#unread = true;
    this.#waitsForClient();
  }

  flows(): void {
    this.#unread = false;
    if (this.#unsent) this.#waitsForClient();
    else this.#upstream.flows(this);
  }

  wanted(): void {
    if (this.#permit.request.expectsContinue && !this.#continued) tellToContinue(this.#response);
    this.#continued = true;
  }

  received(bytes: number): void {
    this.#transfer.bytesIn += bytes;
    this.#settings.young.passed(bytes);
  }

  awaited(): void {
    this.#unsent = true;
    if (!this.#unread) this.#waitsForClient();
  }

  supplied(): void {
    this.#unsent = false;
    if (!this.#unread) this.#upstream.flows(this);
  }

  arrived(): void {
    this.#release();
  }

  giveWay(): void {
    this.#gaveWay = true;
    if (this.#body instanceof RequestBody && !this.#response.headersSent) {
      this.#body.destroy(new GateError("request_timeout", { reason: "slow_client" }));
    } else {
      this.#response.destroy();
    }
  }

  ended(brokeOff: UpstreamErrorReason | undefined): void {
    this.#release();
    this.#transfer.brokeOff = this.#gaveWay ? "slow_client" : brokeOff;
    if (brokeOff !== undefined && !this.#gaveWay) {
      this.#settings.observer.upstreamFailed(this.#upstream.name, brokeOff);
    }
    this.#completion.resolve();
  }

  failed(error: GateError, stale: boolean): void {
    this.#release();
    if (!stale || this.#repeated || !isRepeatable(this.#permit.request, this.#body)) {
      this.#fail(error);
      return;
    }
    this.#repeated = true;
    this.#trySend(this.#body instanceof RequestBody ? this.#stream() : this.#body);
  }

  #sendWhole(): void {
    takeSmallBody(this.#request, this.#response, (body) => {
      if (body === undefined) {
        this.#left();
        return;
      }
      this.#transfer.bytesIn += body.length;
      this.#trySend(body);
    });
  }

  #trySend(body: Body): void {
    try {
      this.#send(body);
    } catch (error) {
      this.#completion.reject(error);
    }
  }

  #send(body: Body): void {
    const target = this.#upstream.take(this);
    if (target !== undefined) this.#sendTo(target, body);
    else void this.#wait(body).catch((error: unknown) => this.#completion.reject(error));
  }

  async #wait(body: Body): Promise<void> {
    const target = await this.#upstream.wait(this, this.#response);
    if (target === undefined) this.#left();
    else this.#sendTo(target, body);
  }

  #sendTo(target: Target, body: Body): void {
    this.#target = target;
    if (this.#response.destroyed) {
      // It will not close once more, and the place would never come free.
      this.#release();
      this.#left();
      return;
    }
    this.#started = this.#settings.clock.monotonic();
    this.#transfer.target = target.address;
    this.#body = body;
    const relay = new Relay(this.#response, this.#permit.request.requestId, this);
    target.pool.dispatch(dispatchOf(this.#permit, this.#settings.outgoing, body), relay);
  }

  #waitsForClient(): void {
    // What is left of a request whose place was given back holds nobody up.
    if (this.#target === undefined) return;
    this.#upstream.held(this, this.#settings.clock.monotonic());
  }

  #release(): void {
    if (this.#target === undefined) return;
    this.#upstream.flows(this);
    this.#upstream.release(this.#target, this);
    this.#target = undefined;
  }

  /** The client is gone, and nothing was sent to the backend. */
  #left(): void {
    this.#transfer.brokeOff = "aborted";
    this.#completion.resolve();
  }

  #fail(error: GateError): void {
    const reason = upstreamReason(error);
    if (reason !== undefined) this.#settings.observer.upstreamFailed(this.#upstream.name, reason);
    this.#completion.reject(error);
  }

  #stream(): RequestBody {
    return new RequestBody(this.#request, this.#bodyLimit, this);
  }
}
