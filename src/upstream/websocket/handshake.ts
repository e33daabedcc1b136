import { hash } from "node:crypto";
import type { ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { EventEmitter } from "node:events";
import { isPassable } from "../headers/incoming-headers.ts";
import { BackendFault } from "../http/failures.ts";
import type { ClientEnd } from "./websocket.ts";
import type { BufferHolder } from "../../core/request/transfer.ts";
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
  /** Handshakes are sent again only before they have reached a backend. */
  readonly attempts = 1;
  readonly #end: ClientEnd;
  #early: Buffer[];
  #bytes: number;
  /** The error for a client that has sent too much; undefined for one that has left or is waiting. */
  refusal: GateError | undefined;

  /** @param head data that arrived with the request. */
  constructor(end: ClientEnd, head: Buffer) {
    super();
    this.#end = end;
    this.#early = head.length === 0 ? [] : [head];
    this.#bytes = head.length;
    end.duplex.on("data", this.#onData).on("end", this.#onEnd).on("close", this.cancel);
  }

  /** The buffered early data, in bytes. */
  get bufferedBytes(): number {
    return this.#bytes;
  }

  /** Ends the handshake with the backend: the client has left, or gets its answer from elsewhere. */
  readonly cancel = (): void => {
    this.#detach();
    this.emit("close");
  };

  /** Detaches from the client; its next reader gets the early data first. */
  handOver(): void {
    const early = Buffer.concat(this.#early);
    this.#detach();
    const { duplex } = this.#end;
    if (early.length > 0 && !duplex.destroyed) duplex.unshift(early);
  }

  #detach(): void {
    const { duplex } = this.#end;
    duplex.off("data", this.#onData).off("end", this.#onEnd).off("close", this.cancel);
    duplex.pause();
    this.#early = [];
    this.#bytes = 0;
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#early.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes <= MAX_EARLY_BYTES) return;
    this.refusal = new GateError("bad_request", {
      message: "A WebSocket client must wait for the answer to its handshake",
    });
    this.cancel();
  };

  readonly #onEnd = (): void => this.#end.abort();
}

/** The response to a handshake, with a socket if the backend switched protocols. */
interface HandshakeResponse {
  readonly message: IncomingMessage;
  readonly socket: Socket | undefined;
}

/** The GUID that is appended to the key before hashing (RFC 6455 §1.3). */
const WEBSOCKET_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/**
 * Waits for the response to a handshake.
 *
 * @param client aborts the handshake when it closes.
 * @param limitMs the time limit for the backend.
 * @throws an error that `failureReason` knows: of the connection, the timeout, or an invalid response.
 */
export function handshakeResponse(
  handshake: ClientRequest,
  client: HandshakeClient,
  limitMs: number,
): Promise<HandshakeResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<HandshakeResponse>();
  const timer = setTimeout(() => {
    const connecting = handshake.socket?.connecting ?? true;
    handshake.destroy(new BackendFault(connecting ? "connect_timeout" : "response_timeout"));
  }, limitMs);
  const onClientGone = (): void => {
    handshake.destroy(new BackendFault("handshake_aborted"));
  };
  client.once("close", onClientGone);
  handshake
    .once("upgrade", (message, socket, head) => {
      const key = String(handshake.getHeader("sec-websocket-key") ?? "");
      if (isSwitch(message, key)) {
        if (head.length > 0) socket.unshift(head);
        resolve({ message, socket });
      } else {
        socket.destroy();
        reject(new BackendFault("invalid_answer"));
      }
    })
    .once("response", (message) => {
      if (isRefusal(message)) resolve({ message, socket: undefined });
      else handshake.destroy(new BackendFault("invalid_answer"));
    })
    .on("error", reject);
  return promise.finally(() => {
    clearTimeout(timer);
    client.off("close", onClientGone);
  });
}

/** Whether the backend switched to WebSocket, and in response to this key (RFC 6455 §4.1). */
function isSwitch({ headers }: IncomingMessage, key: string): boolean {
  return (
    headers.upgrade?.toLowerCase() === "websocket" &&
    headers["sec-websocket-accept"] === hash("sha1", key + WEBSOCKET_GUID, "base64")
  );
}

/** Whether the backend refused with a valid response. A 101 without a protocol arrives as an ordinary response, too. */
function isRefusal({ statusCode = 0, statusMessage = "", headers }: IncomingMessage): boolean {
  return statusCode >= 200 && isPassable(statusCode, statusMessage, headers);
}
