import { Readable } from "node:stream";
import { GateError } from "../../core/request/errors.ts";
import type { IncomingRequest } from "../../core/request/http-message.ts";
import { BackendFault } from "./faults.ts";

/** Called while a body is transferred. */
export interface BodyEvents {
  received(chunk: Buffer): void;
  /** The body is complete. */
  ended(): void;
  /** The backend waits for the client. Called when the wait begins, and again after every 16 KiB received. */
  awaited(): void;
  /** The backend no longer waits: it has as much as it can take, or everything. */
  supplied(): void;
}

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
      this.destroy(new GateError("body_too_large", { reason: "body_too_large" }));
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
export class ReplayBuffer {
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
