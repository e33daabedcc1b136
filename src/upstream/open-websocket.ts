import type { Socket } from "node:net";
import type { Transfer } from "../core/transfer.ts";
import { closeFrame, FrameBoundary } from "../lib/websocket-frames.ts";

const GOING_AWAY = 1001;
/** How long both sides have to say goodbye, in milliseconds. */
const CLOSING_HANDSHAKE_MS = 2_000;

/** Two sockets that http-proxy-3 pipes into each other: counted, limited in idleness, and closed together. */
export class OpenWebSocket {
  readonly #client: Socket;
  readonly #backend: Socket;
  readonly #frames = new FrameBoundary();
  readonly #idle: NodeJS.Timeout;
  readonly #closed = Promise.withResolvers<void>();
  #leaving = false;
  #saidGoodbye = false;

  /** @param idleMs both sockets end after so long without a byte in either direction. */
  constructor(client: Socket, backend: Socket, transfer: Transfer, idleMs: number) {
    this.#client = client;
    this.#backend = backend;
    this.#idle = setTimeout(() => this.#destroy(), idleMs);
    client.on("data", (chunk: Buffer) => {
      transfer.bytesIn += chunk.length;
      this.#idle.refresh();
    });
    backend.on("data", (chunk: Buffer) => {
      transfer.bytesOut += chunk.length;
      this.#idle.refresh();
      this.#frames.advance(chunk);
      if (this.#leaving) this.#sayGoodbye();
    });
    client.once("close", () => {
      clearTimeout(this.#idle);
      backend.destroySoon();
      this.#closed.resolve();
    });
    client.once("error", () => this.#destroy());
    backend.once("error", () => this.#destroy());
    if (client.destroyed) this.#destroy();
  }

  /** Resolves when the client's side is closed. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Sends close code 1001 to the client as soon as no frame of the backend's is half sent. */
  goingAway(): void {
    this.#leaving = true;
    this.#sayGoodbye();
  }

  /** The client's answering close frame goes on to the backend, so that both learn of the end. */
  #sayGoodbye(): void {
    if (this.#saidGoodbye || !this.#frames.between || !this.#client.writable) return;
    this.#saidGoodbye = true;
    this.#backend.unpipe(this.#client);
    this.#backend.resume();
    this.#client.write(closeFrame(GOING_AWAY));
    setTimeout(() => this.#destroy(), CLOSING_HANDSHAKE_MS).unref();
  }

  #destroy(): void {
    this.#client.destroy();
    this.#backend.destroy();
    this.#closed.resolve();
  }
}
