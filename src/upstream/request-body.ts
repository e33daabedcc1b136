import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { GateError } from "../core/errors.ts";

/** What a body tells while it passes. */
export interface BodyEvents {
  /** Once, when the first byte is asked for: a client that expects it is told to continue. */
  wanted(): void;
  received(bytes: number): void;
  /** The backend waits for the client to send: when that begins, and again after every 16 KiB that have come since. */
  awaited(): void;
  /** The backend does not wait any more: it has as much as it can take, or all. */
  supplied(): void;
}

/** So much has to come for a client to count as one that sends: whoever sends a byte now and then does not. */
const FLOWING_BYTES = 16 * 1024;

/**
 * The client's body on its way to the backend, with back-pressure. It stands between the two so that whatever ends the
 * backend's request does not end the client's connection before it has its answer.
 */
export class RequestBody extends Readable {
  readonly #source: IncomingMessage;
  readonly #limit: number;
  readonly #events: BodyEvents;
  #begun = false;
  #awaited = false;
  /** Bytes that have come since it was told last that the backend waits. */
  #since = 0;
  #ended = false;
  #bytes = 0;

  /** @param limit more bytes than this are an error; for a body without length. */
  constructor(source: IncomingMessage, limit: number, events: BodyEvents) {
    super({ highWaterMark: 64 * 1024 });
    this.#source = source;
    this.#limit = limit;
    this.#events = events;
  }

  /** Whether nothing of the body has been taken from the client yet. */
  get untouched(): boolean {
    return this.#bytes === 0 && !this.#ended;
  }

  override _read(): void {
    if (!this.#awaited) this.#await();
    if (!this.#begun) {
      this.#begun = true;
      this.#events.wanted();
      this.#source.on("data", this.#onData).on("end", this.#onEnd).on("close", this.#onClose);
    }
    this.#source.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#source.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onClose);
    // What comes now belongs to the next attempt, or is read away by whoever answers: flowing on, it would be lost.
    this.#source.pause();
    done(error);
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#bytes += chunk.length;
    this.#events.received(chunk.length);
    if (this.#bytes > this.#limit) {
      this.#source.pause();
      this.destroy(new GateError("body_too_large", { reason: "body_too_large" }));
    } else if (this.push(chunk)) {
      this.#since += chunk.length;
      if (this.#since >= FLOWING_BYTES) this.#await();
    } else {
      this.#source.pause();
      this.#supplied();
    }
  };

  readonly #onEnd = (): void => {
    this.#ended = true;
    this.#supplied();
    this.push(null);
  };

  readonly #onClose = (): void => {
    if (!this.#source.complete) this.destroy(new ClientGone());
  };

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

/** The client left before its request was whole. */
export class ClientGone extends Error {
  readonly code = "UND_ERR_ABORTED";

  constructor() {
    super("the client is gone");
    this.name = "ClientGone";
  }
}
