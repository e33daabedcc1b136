import type { IncomingHttpHeaders } from "node:http";
import type { OutgoingResponse } from "../../core/request/http-message.ts";
import {
  clientFields,
  isPassable,
  mayEndWithTrailers,
  responseHeaders,
  responseTrailers,
} from "../headers/incoming-headers.ts";
import { atEndOfTurn, type TurnTask } from "../../lib/async/end-of-turn.ts";
import type { PermittedRequest } from "./dispatch.ts";
import type { Exchange } from "./exchange.ts";
import type { Slot } from "../pool/slot.ts";
import { BackendFault } from "./failures.ts";

/** Maximum number of interim answers: each restarts the backend's response timeout. */
const MAX_INTERIM = 16;

/**
 * Answers up to this size are written as one string together with their head, which takes 0.92 to 0.96 of the CPU time of a
 * small request.
 */
const SMALL_ANSWER_BYTES = 4096;

/** Larger answers count against the client's share of reading time. Smaller ones have arrived completely. */
const LARGE_ANSWER_BYTES = 16 * 1024;

/** Writes the answer of a backend to the client. */
export class ClientAnswer implements TurnTask {
  readonly #permitted: PermittedRequest;
  readonly #response: OutgoingResponse;
  readonly #slot: Slot;
  readonly #exchange: Exchange;
  #interim = 0;
  /** The `Content-Length`; -1 without one. */
  #expected = -1;
  /** The last part of the answer, in Latin-1 to preserve every byte. It is sent at the end of the turn. */
  #last: string | undefined;

  constructor(permitted: PermittedRequest, slot: Slot, exchange: Exchange) {
    this.#permitted = permitted;
    this.#response = permitted.response;
    this.#slot = slot;
    this.#exchange = exchange;
  }

  /**
   * Forwards a 103 to the client and ignores all other interim answers (RFC 9110 §15.2).
   * @throws BackendFault if there are too many.
   */
  interim(status: number, headers: IncomingHttpHeaders): void {
    this.#interim += 1;
    if (this.#interim > MAX_INTERIM) throw new BackendFault("invalid_answer");
    if (status === 103) passEarlyHints(this.#response, headers);
  }

  /**
   * Writes the head.
   * @param elapsedMs the milliseconds since the request was sent.
   * @throws BackendFault if the head cannot be forwarded.
   */
  begin(
    status: number,
    statusMessage: string,
    headers: IncomingHttpHeaders,
    elapsedMs: number,
  ): void {
    const length = headers["content-length"];
    if (!isPassable(status, statusMessage, headers)) throw new BackendFault("invalid_answer");
    if (headers["trailer"] !== undefined && !mayEndWithTrailers(this.#response, status)) {
      delete headers["trailer"];
    }
    this.#expected = length === undefined ? -1 : Number(length);
    const { permit, transfer, upstream, settings } = this.#permitted;
    const fields = clientFields(
      headers,
      permit,
      status,
      this.#slot.target?.origin,
      transfer.cors?.backend,
    );
    this.#response.writeHead(status, statusMessage, fields);
    atEndOfTurn(this);
    transfer.upstreamHeaderMs = elapsedMs;
    settings.observer.upstreamAnswered(upstream.name, status, elapsedMs / 1000);
  }

  /**
   * Writes a part of the body.
   * @returns whether more may be written at once; otherwise `Exchange.goOn` is called later.
   */
  write(chunk: Buffer): boolean {
    const { request, transfer, settings } = this.#permitted;
    const { buffered } = settings;
    transfer.bytesOut += chunk.length;
    if (transfer.bytesOut > LARGE_ANSWER_BYTES) this.#slot.charge(request.socket);
    const isLast = transfer.bytesOut === this.#expected;
    if (isLast) this.#writeLast(chunk);
    const keepsUp = isLast || this.#writePart(chunk);
    if (!keepsUp) this.#slot.readStalled(transfer.bytesOut);
    if (this.#response.writableLength > SMALL_ANSWER_BYTES) buffered.measure(request.socket);
    else if (!isLast) buffered.touch(request.socket);
    return keepsUp;
  }

  /** @returns whether the client keeps up. */
  #writePart(chunk: Buffer): boolean {
    const response = this.#response;
    if (!this.#permitted.settings.buffered.scarce) {
      if (response.write(chunk)) return true;
      response.once("drain", () => this.#taken());
    } else {
      // While memory is scarce, only one part waits for the client.
      response.write(chunk, () => this.#taken());
    }
    return false;
  }

  #taken(): void {
    this.#slot.readResumed();
    this.#exchange.goOn();
  }

  #writeLast(chunk: Buffer): void {
    if (chunk.length > SMALL_ANSWER_BYTES) {
      this.#response.end(chunk);
      return;
    }
    this.#permitted.transfer.arrived = true;
    if (this.#isWrittenAtOnce) {
      this.#response.end(chunk.toString("latin1"), "latin1");
      return;
    }
    this.#last = chunk.toString("latin1");
    atEndOfTurn(this);
  }

  /**
   * Whether the last part is not delayed until the end of the turn. For HTTP/1.1 over TLS the delay saves nothing, and made
   * V8 retain requests until the next full collection, at 1.4 times the CPU time. With it, HTTP/2 takes 0.92 of the CPU time.
   */
  get #isWrittenAtOnce(): boolean {
    const { permit, request } = this.#permitted;
    return permit.request.connection.secure && request.httpVersion !== "2.0";
  }

  /** Ends a complete answer. */
  end(trailers: IncomingHttpHeaders | undefined): void {
    const { transfer } = this.#permitted;
    if (this.#last !== undefined || this.#response.writableEnded) return;
    transfer.arrived = transfer.bytesOut <= SMALL_ANSWER_BYTES;
    try {
      if (trailers !== undefined && this.#expected === -1) {
        const fields = responseTrailers(trailers);
        if (fields.length > 0) this.#response.addTrailers(fields);
      }
      this.#response.end();
    } catch (error) {
      this.#exchange.unwritable(error);
    }
  }

  /**
   * Sends what has arrived by the end of the turn: a small answer with its head, or the head alone. Called twice in a turn in
   * which both arrive.
   */
  runAtEndOfTurn(): void {
    const response = this.#response;
    // The client may have left in the meantime.
    if (response.destroyed || response.writableEnded) return;
    try {
      if (this.#last !== undefined) response.end(this.#last, "latin1");
      else if (this.#permitted.transfer.bytesOut === 0) response.flushHeaders();
    } catch (error) {
      this.#exchange.unwritable(error);
    }
  }
}

/**
 * Forwards a backend's 103 to the client (RFC 8297). Hints are optional, so none is sent where it could do harm: to an
 * HTTP/1.0 client (RFC 9110 §15.2), after the final head, while an earlier answer is written, or to a client that does not
 * read.
 *
 * Node's `writeEarlyHints` is not used: it checks `Link` with a regular expression of exponential time. Before 26.2, Node has
 * no other way to write a 103, so none is sent.
 *
 * @param headers names in lower case.
 */
function passEarlyHints(response: OutgoingResponse, headers: IncomingHttpHeaders): void {
  const { req } = response;
  if (response.destroyed || req.socket.writableNeedDrain || response.headersSent) return;
  if (req.httpVersion === "1.0") return;
  const fields = responseHeaders(headers, 103);
  if (fields.length > 0) response.writeInformation?.(103, fields);
}
