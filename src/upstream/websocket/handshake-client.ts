import { EventEmitter } from "node:events";
import type { ClientEnd } from "./client-end.ts";
import type { BufferHolder } from "../../core/buffered-bytes.ts";
import { GateError } from "../../core/request/errors.ts";

/**
 * Maximum early data to buffer, in bytes. A compliant client sends none before the handshake response (RFC 6455
 * §4.1).
 */
const MAX_EARLY_BYTES = 64 * 1024;

/**
 * The client of a WebSocket until its handshake is answered. It is always read, since a FIN is noticed only after the
 * data before it. Early data is buffered for the backend, in order.
 *
 * Emits `close` once, when the client no longer waits: it has closed, or has sent too much.
 */
export class HandshakeClient extends EventEmitter<{ close: [] }> implements BufferHolder {
  readonly #end: ClientEnd;
  #early: Buffer[];
  #bytes: number;
  #refusal: GateError | undefined;

  /** @param head data that arrived with the request. */
  constructor(end: ClientEnd, head: Buffer) {
    super();
    this.#end = end;
    this.#early = head.length === 0 ? [] : [head];
    this.#bytes = head.length;
    end.duplex.on("data", this.#onData).on("end", this.#onEnd).on("close", this.#onClose);
  }

  /** The buffered early data, in bytes. */
  get bufferedBytes(): number {
    return this.#bytes;
  }

  /** The error for a client that has sent too much; undefined for one that has left or is waiting. */
  get refusal(): GateError | undefined {
    return this.#refusal;
  }

  /** Ends the handshake with the backend. The client gets its answer from elsewhere. */
  cancel(): void {
    this.#onClose();
  }

  /** Detaches from the client; its next reader gets the early data first. */
  handOver(): void {
    this.#detach();
    const { duplex } = this.#end;
    if (this.#bytes > 0 && !duplex.destroyed) duplex.unshift(Buffer.concat(this.#early));
    this.#clear();
  }

  #detach(): void {
    const { duplex } = this.#end;
    duplex.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onClose);
    duplex.pause();
  }

  #clear(): void {
    this.#early = [];
    this.#bytes = 0;
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#early.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes <= MAX_EARLY_BYTES) return;
    this.#detach();
    this.#clear();
    this.#refusal = new GateError("bad_request", {
      message: "A WebSocket client must wait for the answer to its handshake",
    });
    this.emit("close");
  };

  readonly #onEnd = (): void => this.#end.abort();

  readonly #onClose = (): void => {
    this.#detach();
    this.#clear();
    this.emit("close");
  };
}
