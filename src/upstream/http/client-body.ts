import { Readable } from "node:stream";
import { GateError } from "../../core/request/errors.ts";
import { sendContinue } from "../../lib/http/header-values.ts";
import type { PermittedRequest } from "./dispatch.ts";
import { atEndOfTurn, type TurnTask } from "../../lib/async/end-of-turn.ts";
import { countGarbage } from "./scavenger.ts";
import type { Slot } from "../pool/slot.ts";
import type { IncomingRequest } from "../../core/request/http-message.ts";
import { BackendFault } from "./failures.ts";

/** What is called while a body is transferred. */
type BodyEvents = Pick<ClientBody, "received" | "ended" | "awaited" | "supplied">;

/** Bytes after which a client counts as sending. Single bytes now and then do not. */
const FLOWING_BYTES = 16 * 1024;

/** Maximum number of chunks that wait for the backend, since each takes memory in addition to its bytes. */
const MAX_CHUNKS = 64;

/**
 * Streams the client's body to the backend, with back-pressure. It decouples the two, so that a failed request to the backend
 * does not end the client's connection before the client has its answer.
 */
export class RequestBody extends Readable {
  readonly #source: IncomingRequest;
  readonly #limit: number;
  readonly #events: BodyEvents;
  readonly #replay: ReplayBuffer | undefined;
  #begun = false;
  #awaited = false;
  /** Bytes received since the last call of `awaited`. */
  #since = 0;
  #ended = false;
  #bytes = 0;
  /** Chunks received since the buffer was last empty. */
  #chunks = 0;

  /**
   * @param limit maximum size in bytes, for a body without a length.
   * @param replay the part that earlier attempts have sent: it is sent first.
   */
  constructor(source: IncomingRequest, limit: number, events: BodyEvents, replay?: ReplayBuffer) {
    super({ highWaterMark: 64 * 1024 });
    this.#replay = replay;
    this.#source = source;
    this.#limit = limit;
    this.#events = events;
  }

  /** Whether another attempt can send all of it: nothing has been read yet, or everything that was read is stored. */
  get isReplayable(): boolean {
    return (this.#bytes === 0 && !this.#ended) || this.#replay?.isComplete === true;
  }

  /** The client's trailers, once the body has ended: names and values, alternating. */
  get trailers(): readonly string[] {
    return this.#ended ? this.#source.rawTrailers : [];
  }

  override _read(): void {
    if (!this.#awaited) this.#await();
    if (!this.#begun) {
      this.#begun = true;
      if (this.#replay !== undefined && this.#repeat(this.#replay)) return;
      this.#source.on("data", this.#onData).on("end", this.#onEnd).on("close", this.#onClose);
    }
    this.#source.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#source.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onClose);
    // The rest belongs to the next attempt or is discarded after the answer. If the source kept flowing, it would be lost.
    this.#source.pause();
    done(error);
  }

  /** Sends the stored part. @returns whether that was the entire body. */
  #repeat(replay: ReplayBuffer): boolean {
    this.#bytes = replay.bytes;
    for (const chunk of replay.chunks) this.push(chunk);
    if (replay.hasEnded) this.#finish();
    return replay.hasEnded;
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#bytes += chunk.length;
    this.#replay?.add(chunk);
    this.#events.received(chunk);
    if (this.#bytes > this.#limit) {
      this.#source.pause();
      this.destroy(new GateError("body_too_large"));
    } else if (this.#passOn(chunk)) {
      this.#since += chunk.length;
      if (this.#since >= FLOWING_BYTES) this.#await();
    } else {
      this.#source.pause();
      this.#supplied();
    }
  };

  readonly #onEnd = (): void => {
    if (this.#replay !== undefined) this.#replay.hasEnded = true;
    this.#events.ended();
    this.#finish();
  };

  #finish(): void {
    this.#ended = true;
    this.#supplied();
    this.push(null);
  }

  readonly #onClose = (): void => {
    if (!this.#source.complete) this.destroy(new BackendFault("client_gone"));
  };

  /** @returns whether there is room for more. */
  #passOn(chunk: Buffer): boolean {
    const more = this.push(chunk);
    this.#chunks = this.readableLength === 0 ? 0 : this.#chunks + 1;
    return more && this.#chunks < MAX_CHUNKS;
  }

  #await(): void {
    this.#awaited = true;
    this.#since = 0;
    this.#events.awaited();
  }

  #supplied(): void {
    this.#awaited = false;
    this.#events.supplied();
  }
}

/** Maximum size of a body without a length that can be sent again, in bytes: the same as for one with a length. */
const MAX_REPLAY_BYTES = 16 * 1024;

/** The part of a body without a length that was sent, as long as it is small, so that it can be sent again. */
class ReplayBuffer {
  chunks: Buffer[] = [];
  bytes = 0;
  /** Whether everything that was sent is stored here. */
  isComplete = true;
  /** Whether the client has sent all of it. */
  hasEnded = false;

  add(chunk: Buffer): void {
    if (!this.isComplete) return;
    this.bytes += chunk.length;
    this.chunks.push(chunk);
    if (this.bytes > MAX_REPLAY_BYTES || this.chunks.length > MAX_CHUNKS) this.drop();
  }

  /** It will not be sent again. */
  drop(): void {
    this.isComplete = false;
    this.chunks = [];
    this.bytes = 0;
  }
}

/**
 * Bodies up to this size are read completely before a connection to the backend is taken, and written together with the head.
 * Streaming makes a POST of 4 KiB 1.5 times as expensive, and a slow client would occupy a connection.
 */
const SMALL_BODY_BYTES = 16 * 1024;

/** The body of a request: a small one that is read completely, or a stream. */
export class ClientBody implements TurnTask {
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

  /** The body is complete. */
  ended(): void {
    this.#permitted.copy?.end();
  }

  /** The backend waits for the client. Called when the wait begins, and again after every 16 KiB received. */
  awaited(): void {
    const { request, settings } = this.#permitted;
    this.#slot.sendStalled();
    settings.buffered.touch(request.socket);
  }

  /** The backend no longer waits: it has as much as it can take, or everything. */
  supplied(): void {
    const { request, settings } = this.#permitted;
    this.#slot.sendResumed();
    settings.buffered.measure(request.socket);
  }

  #stream(): void {
    const { permit, request, upstream } = this.#permitted;
    // An HTTP/2 backend reports requests that it has not processed, so they can be sent again.
    if (permit.request.bodyLength < 0 && upstream.speaksHttp2) this.#replay ??= new ReplayBuffer();
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
