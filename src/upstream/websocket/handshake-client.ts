import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import type { BufferHolder } from "../../core/buffered-bytes.ts";
import { GateError } from "../../core/request/errors.ts";

/**
 * Maximum early data to buffer, in bytes. A compliant client sends none before the handshake response (RFC 6455
 * §4.1).
 */
const MAX_EARLY_BYTES = 64 * 1024;

/**
 * The client of a WebSocket until its handshake is answered. Its socket is always read, since a FIN is only seen
 * behind the data before it. Early data is kept for the backend, in order.
 *
 * Emits `close` once, when the client no longer waits: it has closed, or has sent too much.
 */
export class HandshakeClient extends EventEmitter<{ close: [] }> implements BufferHolder {
  readonly #socket: Socket;
  #early: Buffer[];
  #bytes: number;
  #refusal: GateError | undefined;

  /** @param head data that arrived with the request. */
  constructor(socket: Socket, head: Buffer) {
    super();
    this.#socket = socket;
    this.#early = head.length === 0 ? [] : [head];
    this.#bytes = head.length;
    socket.on("data", this.#onData).on("end", this.#onEnd).on("close", this.#onClose);
  }

  /** The buffered early data, in bytes. */
  get bufferedBytes(): number {
    return this.#bytes;
  }

  /** The error for a client that has sent too much; undefined for one that has left or is waiting. */
  get refusal(): GateError | undefined {
    return this.#refusal;
  }

  /** Detaches from the socket; its next reader gets the early data first. */
  handOver(): void {
    this.#detach();
    if (this.#bytes > 0 && !this.#socket.destroyed) {
      this.#socket.unshift(Buffer.concat(this.#early));
    }
    this.#clear();
  }

  #detach(): void {
    const socket = this.#socket;
    socket.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onClose);
    socket.pause();
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

  readonly #onEnd = (): void => void this.#socket.destroy();

  readonly #onClose = (): void => {
    this.#detach();
    this.#clear();
    this.emit("close");
  };
}
