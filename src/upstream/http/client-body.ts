import type { GateError } from "../../core/request/errors.ts";
import { sendContinue } from "../../lib/http/send-continue.ts";
import type { PermittedRequest } from "./permitted-request.ts";
import { atEndOfTurn, type TurnTask } from "../../lib/async/end-of-turn.ts";
import { type BodyEvents, ReplayBuffer, RequestBody } from "./request-body.ts";
import { countGarbage } from "./scavenger.ts";
import type { Slot } from "../pool/slot.ts";

/**
 * Bodies up to this size are read completely before a connection to the backend is taken, and written together with the head.
 * Streaming makes a POST of 4 KiB 1.5 times as expensive, and a slow client would occupy a connection.
 */
const SMALL_BODY_BYTES = 16 * 1024;

/** The body of a request: a small one that is read completely, or a stream. */
export class ClientBody implements BodyEvents, TurnTask {
  readonly #permitted: PermittedRequest;
  readonly #slot: Slot;
  /** The body to send to the backend. */
  content: Buffer | RequestBody | undefined;
  /** The bytes of a small body received so far. */
  #gathered = 0;
  #replay: ReplayBuffer | undefined;
  /** Called when the body can be sent, while it is not known whether it is small. */
  #ready: (() => void) | undefined;

  constructor(permitted: PermittedRequest, slot: Slot) {
    this.#permitted = permitted;
    this.#slot = slot;
    slot.body = this;
  }

  /** The bytes held in memory. */
  get bufferedBytes(): number {
    const { content } = this;
    return content instanceof RequestBody ? content.readableLength : this.#gathered;
  }

  /** The bytes that are also stored to be sent again. */
  get replayBytes(): number {
    return this.#replay?.bytes ?? 0;
  }

  /** Whether the complete body can be sent again. */
  get isReplayable(): boolean {
    return !(this.content instanceof RequestBody) || this.content.isReplayable;
  }

  /** Calls `ready` when the body can be sent, or never if the client leaves. */
  prepare(ready: () => void): void {
    const { permit, upstream } = this.#permitted;
    const { bodyLength, expectsContinue } = permit.request;
    if (bodyLength > 0 && bodyLength <= SMALL_BODY_BYTES && !expectsContinue) this.#gather(ready);
    else if (bodyLength < 0 && upstream.speaksHttp2 && !expectsContinue) {
      // gRPC calls have no length. The message of a unary call usually arrives in the same turn as the head.
      this.#ready = ready;
      atEndOfTurn(this);
    } else {
      if (bodyLength < 0 && upstream.speaksHttp2) this.#replay = new ReplayBuffer();
      this.#stream();
      ready();
    }
  }

  /** Sends a body whose length was not known: as a small one, if it has arrived, or as a stream. */
  runAtEndOfTurn(): void {
    const ready = this.#ready;
    if (ready === undefined) return;
    if (this.#hasArrived) this.#gather(ready);
    else {
      // An HTTP/2 backend reports requests that it has not processed, so they can be sent again.
      this.#replay = new ReplayBuffer();
      this.#stream();
      ready();
    }
  }

  /** Whether the complete body can be read now, is small, and has no trailers, which only a stream can carry. */
  get #hasArrived(): boolean {
    const { permit, request } = this.#permitted;
    const limit = Math.min(SMALL_BODY_BYTES, permit.route.bodyBytes);
    return (
      request.complete &&
      !request.destroyed &&
      request.rawTrailers.length === 0 &&
      request.readableLength <= limit
    );
  }

  /** A connection is about to take the body: sends 100 Continue if the client waits for it. */
  expect(): void {
    const { permit, response } = this.#permitted;
    if (permit.request.expectsContinue && this.content !== undefined) sendContinue(response);
  }

  /** Prepares the body to be sent again; see `isReplayable`. */
  renew(): void {
    if (this.content instanceof RequestBody) this.#stream();
  }

  /** The request will not be sent again: an answer has begun. */
  settle(): void {
    this.#replay?.drop();
  }

  /** Ends the request to the backend with this error if the body is a stream. @returns whether it is. */
  fail(error: GateError): boolean {
    if (!(this.content instanceof RequestBody)) return false;
    this.content.destroy(error);
    return true;
  }

  received(chunk: Buffer): void {
    this.#permitted.transfer.bytesIn += chunk.length;
    countGarbage(chunk.length);
    this.#permitted.copy?.add(chunk);
  }

  ended(): void {
    this.#permitted.copy?.end();
  }

  awaited(): void {
    const { request, settings } = this.#permitted;
    this.#slot.sendStalled();
    settings.buffered.touch(request.socket);
  }

  supplied(): void {
    const { request, settings } = this.#permitted;
    this.#slot.sendResumed();
    settings.buffered.measure(request.socket);
  }

  #stream(): void {
    const { permit, request } = this.#permitted;
    this.content = new RequestBody(request, permit.route.bodyBytes, this, this.#replay);
  }

  #gather(ready: () => void): void {
    const { request, transfer, copy } = this.#permitted;
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      this.#gathered += chunk.length;
    });
    request.on("end", () => {
      const [only] = chunks;
      this.content = chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks);
      transfer.bytesIn += this.content.length;
      copy?.add(this.content);
      copy?.end();
      ready();
    });
  }
}
