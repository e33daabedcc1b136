import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Dispatcher } from "undici";
import { GateError } from "../core/errors.ts";
import type { UpstreamErrorReason } from "../core/outcome.ts";
import type { ConnectionUse } from "./backend-connection.ts";
import { failure, failureReason, isUnsendable } from "./failures.ts";
import { incomingHeaders, incomingTrailers } from "./incoming-headers.ts";
import { ClientGone } from "./request-body.ts";
import { sendTogether } from "./send-together.ts";

/** A status line that Node would refuse to write: control characters in the reason phrase (RFC 9112 §4). */
const REASON_PHRASE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** More answers than this before the final one are no help: each gives the backend its whole time anew. */
const MOST_INTERIM = 16;

/**
 * So small an answer leaves as one text together with its head, in one write of one piece: 0.92 to 0.96 of the processor
 * time of a small request.
 */
const SMALL_ANSWER_BYTES = 4096;

/** What the relay tells while the answer passes. */
export interface RelayEvents {
  /** The head of the request is about to be written to this connection. */
  sentOn(socket: Socket): void;
  /** The head of the final answer arrived. */
  answered(status: number): void;
  moved(bytes: number): void;
  /** The answer stands still until the client has read what waits for it; it goes on with `flows`. */
  held(): void;
  flows(): void;
  /** All of the answer has arrived: the backend is free, whatever the client still has to read. */
  arrived(): void;
  /** Everything was handed over, the client is gone, or the answer broke off after it had begun. Called once. */
  ended(brokeOff: UpstreamErrorReason | undefined): void;
  /**
   * Nothing was sent to the client. Called once, instead of `ended`.
   * `stale`: a connection that had served before was closed before anything was answered on it.
   */
  failed(error: GateError, stale: boolean): void;
}

/** Carries one answer of a backend to one client. */
export class Relay implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse;
  readonly #requestId: string;
  readonly #events: RelayEvents;
  #connection: ConnectionUse | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #reused = false;
  #answerBegun = false;
  #interim = 0;
  #expected = -1;
  #moved = 0;
  /** The last part of the answer, in Latin-1, which keeps every byte as it is; it leaves at the end of the turn. */
  #last: string | undefined;
  #sendsSoon = false;
  /** The backend's answer has arrived whole. */
  #complete = false;
  #over = false;

  constructor(response: ServerResponse, requestId: string, events: RelayEvents) {
    this.#response = response;
    this.#requestId = requestId;
    this.#events = events;
    response.on("close", this.#onClose);
  }

  /** Called before anything else: the connection that was chosen. */
  goesOn(connection: ConnectionUse): void {
    this.#connection = connection;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#over) {
      controller.abort(new ClientGone());
      return;
    }
    const connection = this.#connection;
    if (connection?.socket === undefined) return;
    this.#reused = connection.used;
    connection.used = true;
    this.#events.sentOn(connection.socket);
  }

  onResponseStarted(): void {
    this.#answerBegun = true;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    statusMessage = "",
  ): void {
    if (this.#over) return;
    if (status < 200) {
      this.#informational(status, headers);
      return;
    }
    // Something else has answered in the meantime: the request turned out to be broken.
    if (this.#response.headersSent) throw new ClientGone();
    const length = headers["content-length"];
    if (!isPassable(status, statusMessage, headers)) throw new InvalidAnswer();
    this.#expected = length === undefined ? -1 : Number(length);
    this.#response.writeHead(
      status,
      statusMessage,
      incomingHeaders(headers, this.#requestId, status),
    );
    this.#events.answered(status);
    this.#sendSoon();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#over) return;
    this.#moved += chunk.length;
    this.#events.moved(chunk.length);
    if (this.#moved === this.#expected) {
      this.#complete = true;
      if (chunk.length > SMALL_ANSWER_BYTES) this.#response.end(chunk);
      else {
        this.#last = chunk.toString("latin1");
        this.#sendSoon();
      }
    } else if (!this.#response.write(chunk)) {
      controller.pause();
      this.#events.held();
      this.#response.once("drain", () => {
        this.#events.flows();
        controller.resume();
      });
    }
  }

  onResponseEnd(_controller: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    this.#events.arrived();
    if (this.#complete || this.#over || this.#response.writableEnded) return;
    this.#complete = true;
    const fields = incomingTrailers(trailers);
    if (fields.length > 0 && this.#expected === -1) this.#response.addTrailers(fields);
    this.#response.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#over) return;
    if (this.#response.headersSent) {
      const reason = failureReason(error);
      this.#end(reason);
      if (reason !== "aborted") this.#response.destroy();
      return;
    }
    this.#over = true;
    this.#response.off("close", this.#onClose);
    if (error instanceof GateError || isUnsendable(error)) {
      const refusal =
        error instanceof GateError ? error : new GateError("bad_request", { cause: error });
      this.#events.failed(refusal, false);
      return;
    }
    const reason = failureReason(error);
    this.#events.failed(
      failure(reason, error),
      reason === "reset" && this.#reused && !this.#answerBegun,
    );
  }

  /** Sends what has arrived by the end of the turn: a small answer together with its head, or a head that stands alone. */
  send(): void {
    this.#sendsSoon = false;
    const response = this.#response;
    // Whose client has left in the meantime has been told.
    if (response.destroyed) return;
    if (this.#last !== undefined) response.end(this.#last, "latin1");
    else if (this.#moved === 0 && !response.writableEnded) response.flushHeaders();
  }

  #sendSoon(): void {
    if (this.#sendsSoon) return;
    this.#sendsSoon = true;
    sendTogether(this);
  }

  /** The answer is out, or the client left: whatever of the backend's is still under way ends. */
  readonly #onClose = (): void => {
    if (this.#over) return;
    const whole = this.#complete && this.#response.writableFinished;
    this.#end(whole ? undefined : "aborted");
    if (!this.#complete) this.#controller?.abort(new ClientGone());
  };

  #end(brokeOff: UpstreamErrorReason | undefined): void {
    this.#over = true;
    this.#response.off("close", this.#onClose);
    this.#events.ended(brokeOff);
  }

  /** 103 helps a browser (RFC 8297); the other interim answers concern us alone. */
  #informational(status: number, headers: IncomingHttpHeaders): void {
    this.#interim += 1;
    if (this.#interim > MOST_INTERIM) throw new InvalidAnswer();
    const link = headers["link"];
    if (status !== 103 || link === undefined || this.#response.headersSent) return;
    try {
      this.#response.writeEarlyHints({ link });
    } catch {
      // A link that Node finds malformed is not worth an error: hints are optional.
    }
  }
}

/**
 * Whether Node can write the answer and the client reads what the backend meant: a status that exists, no trailers promised
 * behind a length, no transfer coding besides `chunked`, which is undone here.
 */
export function isPassable(
  status: number,
  statusMessage: string,
  headers: IncomingHttpHeaders,
): boolean {
  const coding = headers["transfer-encoding"];
  return (
    status <= 599 &&
    REASON_PHRASE.test(statusMessage) &&
    (headers["trailer"] === undefined || headers["content-length"] === undefined) &&
    (coding === undefined || coding.toLowerCase() === "chunked")
  );
}

/** The backend's answer cannot be passed on. */
export class InvalidAnswer extends Error {
  constructor() {
    super("the answer of the backend is not valid HTTP");
    this.name = "InvalidAnswer";
  }
}
