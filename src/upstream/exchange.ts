import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Dispatcher } from "undici";
import { GateError } from "../core/errors.ts";
import type { Observer } from "../core/observer.ts";
import type { Permit } from "../core/permit.ts";
import type { Transfer } from "../core/transfer.ts";
import type { Clock } from "../lib/clock.ts";
import { upstreamReason } from "./failures.ts";
import type { OutgoingHeaders } from "./outgoing-headers.ts";
import { Relay } from "./relay.ts";
import { RequestBody } from "./request-body.ts";
import { endWithTrailers } from "./request-trailers.ts";
import { rewritePath } from "./rewrite.ts";
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

/** Methods that may be sent twice (RFC 9110 §9.2.2). */
const IDEMPOTENT = new Set([
  "GET",
  "HEAD",
  "OPTIONS",
  "PUT",
  "DELETE",
  "PROPFIND",
  "REPORT",
  "SEARCH",
]);

/** One permitted request and its answer, over one connection or, where that turned out to be stale, two. */
export class Exchange {
  readonly #settings: ExchangeSettings;
  readonly #permit: Permit;
  readonly #upstream: Upstream;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #transfer: Transfer;
  /** The client has been told to send its body. */
  #continued = false;
  readonly #completion = Promise.withResolvers<void>();

  constructor(
    settings: ExchangeSettings,
    permit: Permit,
    upstream: Upstream,
    request: IncomingMessage,
    response: ServerResponse,
    transfer: Transfer,
  ) {
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
    try {
      if (this.#permit.request.bodyLength > this.#settings.bodyBytes) {
        throw new GateError("body_too_large", { reason: "body_too_large" });
      }
      this.#send(true);
    } catch (error) {
      this.#completion.reject(error);
    }
  }

  #send(first: boolean): void {
    const target = this.#upstream.pick();
    const { clock, observer } = this.#settings;
    const transfer = this.#transfer;
    const { name } = this.#upstream;
    const started = clock.monotonic();
    const body = this.#body();
    transfer.target = target.address;
    target.inFlight += 1;
    const relay = new Relay(this.#response, this.#permit.request.requestId, {
      sentOn: (socket) => {
        if (body !== undefined && this.#permit.request.bodyLength === -1) this.#trail(socket);
      },
      answered: (status) => {
        const elapsed = clock.monotonic() - started;
        transfer.answeredAfterMs = elapsed;
        observer.upstreamAnswered(name, status, elapsed / 1000);
      },
      moved: (bytes) => {
        transfer.bytesOut += bytes;
        this.#settings.young.passed(bytes);
      },
      ended: (brokeOff) => {
        target.inFlight -= 1;
        transfer.brokeOff = brokeOff;
        if (brokeOff !== undefined) observer.upstreamFailed(name, brokeOff);
        this.#completion.resolve();
      },
      failed: (error, stale) => {
        target.inFlight -= 1;
        if (first && stale && this.#repeatable(body)) this.#sendAgain();
        else this.#fail(error);
      },
    });
    target.pool.dispatch(this.#dispatch(body), relay);
  }

  /** The client's trailers follow a chunked body. */
  #trail(socket: Socket): void {
    endWithTrailers(socket, () => this.#settings.outgoing.trailers(this.#request.rawTrailers));
  }

  #sendAgain(): void {
    try {
      this.#send(false);
    } catch (error) {
      this.#completion.reject(error);
    }
  }

  #fail(error: GateError): void {
    const reason = upstreamReason(error);
    if (reason !== undefined) this.#settings.observer.upstreamFailed(this.#upstream.name, reason);
    this.#completion.reject(error);
  }

  /** The request may be sent once more: it changes nothing twice, and all of it is still here. */
  #repeatable(body: RequestBody | undefined): boolean {
    return IDEMPOTENT.has(this.#permit.request.method) && (body === undefined || body.untouched);
  }

  #body(): RequestBody | undefined {
    const { bodyLength, expectsContinue } = this.#permit.request;
    if (bodyLength === 0) return undefined;
    return new RequestBody(this.#request, {
      limit: this.#settings.bodyBytes,
      wanted: () => {
        if (expectsContinue && !this.#continued) this.#response.writeContinue();
        this.#continued = true;
      },
      received: (bytes) => {
        this.#transfer.bytesIn += bytes;
        this.#settings.young.passed(bytes);
      },
    });
  }

  #dispatch(body: RequestBody | undefined): Dispatch {
    const { route, request } = this.#permit;
    const path = route.rewrite === undefined ? request.path : rewritePath(route, request.path);
    const headers = this.#settings.outgoing.headers(this.#permit);
    if (request.authority !== "") headers.push("Host", request.authority);
    if (request.bodyLength > 0) headers.push("Content-Length", String(request.bodyLength));
    return {
      method: request.method,
      path: path + request.query,
      headers,
      body: body ?? null,
      servername: "fixed.invalid",
    };
  }
}

/** `servername` is fixed, since undici would derive it from Host and reconnect whenever a client sends another. */
type Dispatch = Dispatcher.DispatchOptions & { readonly servername: string };
