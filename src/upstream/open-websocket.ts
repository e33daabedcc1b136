import type { Socket } from "node:net";
import type { Transfer } from "../core/transfer.ts";
import type { Clock } from "../lib/clock.ts";
import { closeFrame, maskedCloseFrame } from "../lib/websocket-frames.ts";
import { Direction } from "./websocket-direction.ts";

/** Close codes of RFC 6455 §7.4.1. */
const GOING_AWAY = 1001;
const POLICY_VIOLATION = 1008;
const TOKEN_EXPIRED = "token expired";
/** How long both sides have to say goodbye, in milliseconds. */
const CLOSING_HANDSHAKE_MS = 2_000;
/** How long a frame that has begun may take when the token has ended, and both sides to close. */
const AFTER_TOKEN_MS = 1_000;
/** A timer does not see when the clock is set, or the machine sleeps. */
const LOOK_AT_CLOCK_MS = 60_000;

/** How long a WebSocket may stay open. */
interface WebSocketLimits {
  /** Both sockets end after so many milliseconds without a byte in either direction. */
  readonly idleMs: number;
  /** When the caller's token ends, milliseconds since the epoch; Infinity where none counts. */
  readonly until: number;
  readonly clock: Clock;
}

/** Two sockets that http-proxy-3 pipes into each other: counted, limited in time, and closed together. */
export class OpenWebSocket {
  readonly #client: Socket;
  readonly #backend: Socket;
  readonly #transfer: Transfer;
  readonly #limits: WebSocketLimits;
  readonly #toClient: Direction;
  readonly #toBackend: Direction;
  readonly #idle: NodeJS.Timeout;
  #expiry: NodeJS.Timeout | undefined;
  readonly #closed = Promise.withResolvers<void>();

  /** To be made in the same turn as the pipes, before a byte has passed. */
  constructor(client: Socket, backend: Socket, transfer: Transfer, limits: WebSocketLimits) {
    this.#client = client;
    this.#backend = backend;
    this.#transfer = transfer;
    this.#limits = limits;
    this.#toClient = new Direction(backend, client);
    this.#toBackend = new Direction(client, backend);
    this.#idle = setTimeout(() => this.#destroy(), limits.idleMs);
    client.on("data", (chunk: Buffer) => {
      transfer.bytesIn += chunk.length;
      this.#idle.refresh();
      this.#toBackend.moved(chunk);
    });
    backend.on("data", (chunk: Buffer) => {
      transfer.bytesOut += chunk.length;
      this.#idle.refresh();
      this.#toClient.moved(chunk);
    });
    client.once("close", () => {
      clearTimeout(this.#idle);
      clearTimeout(this.#expiry);
      backend.destroySoon();
      this.#closed.resolve();
    });
    client.once("error", () => this.#destroy());
    backend.once("error", () => this.#destroy());
    if (client.destroyed) this.#destroy();
    else if (limits.until !== Infinity) this.#awaitExpiry();
  }

  /** Resolves when the client's side is closed. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /**
   * Sends close code 1001 to the client as soon as no frame of the backend's is half sent. The client's answering close frame
   * goes on to the backend, so that both learn of the end.
   */
  goingAway(): void {
    this.#toClient.endWith(closeFrame(GOING_AWAY), () => this.#endWithin(CLOSING_HANDSHAKE_MS));
  }

  #awaitExpiry(): void {
    const { until, clock } = this.#limits;
    const left = until - clock.now();
    if (left <= 0) this.#expire();
    else this.#expiry = setTimeout(() => this.#awaitExpiry(), Math.min(left, LOOK_AT_CLOCK_MS));
  }

  /** Sends close code 1008 to both sides; neither hears from the other any more. */
  #expire(): void {
    this.#transfer.brokeOff = "token_expired";
    this.#toClient.endWith(closeFrame(POLICY_VIOLATION, TOKEN_EXPIRED));
    this.#toBackend.endWith(maskedCloseFrame(POLICY_VIOLATION, TOKEN_EXPIRED));
    this.#endWithin(AFTER_TOKEN_MS);
  }

  #endWithin(ms: number): void {
    setTimeout(() => this.#destroy(), ms).unref();
  }

  #destroy(): void {
    clearTimeout(this.#idle);
    clearTimeout(this.#expiry);
    this.#client.destroy();
    this.#backend.destroy();
    this.#closed.resolve();
  }
}
