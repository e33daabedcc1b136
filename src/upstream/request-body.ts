import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { GateError } from "../core/errors.ts";

export interface RequestBodyOptions {
  /** More bytes than this are an error; for a body without length. */
  readonly limit: number;
  /** Called once when the first byte is asked for: a client that expects it is told to continue. */
  readonly wanted: () => void;
  readonly received: (bytes: number) => void;
}

/**
 * The client's body on its way to the backend, with back-pressure. It stands between the two so that whatever ends the
 * backend's request does not end the client's connection before it has its answer.
 */
export class RequestBody extends Readable {
  readonly #source: IncomingMessage;
  readonly #options: RequestBodyOptions;
  #begun = false;
  #ended = false;
  #bytes = 0;

  constructor(source: IncomingMessage, options: RequestBodyOptions) {
    super({ highWaterMark: 64 * 1024 });
    this.#source = source;
    this.#options = options;
  }

  /** Whether nothing of the body has been taken from the client yet. */
  get untouched(): boolean {
    return this.#bytes === 0 && !this.#ended;
  }

  override _read(): void {
    if (this.#begun) {
      this.#source.resume();
      return;
    }
    this.#begun = true;
    this.#options.wanted();
    this.#source.on("data", this.#onData).on("end", this.#onEnd).on("close", this.#onClose);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#source.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onClose);
    done(error);
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#bytes += chunk.length;
    this.#options.received(chunk.length);
    if (this.#bytes > this.#options.limit) {
      this.#source.pause();
      this.destroy(new GateError("body_too_large", { reason: "body_too_large" }));
    } else if (!this.push(chunk)) {
      this.#source.pause();
    }
  };

  readonly #onEnd = (): void => {
    this.#ended = true;
    this.push(null);
  };

  readonly #onClose = (): void => {
    if (!this.#source.complete) this.destroy(new ClientGone());
  };
}

/** The client left before its request was whole. */
export class ClientGone extends Error {
  readonly code = "UND_ERR_ABORTED";

  constructor() {
    super("the client is gone");
    this.name = "ClientGone";
  }
}
