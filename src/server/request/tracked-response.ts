import type { OutgoingHttpHeader, OutgoingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Http2Connection } from "../http2/http2-connection.ts";
import type { TrackedOutgoing } from "../../core/request/http-message.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { Transfer } from "../../core/request/transfer.ts";
import { ServerResponse, STATUS_CODES } from "../../lib/http/node-http.ts";
import { discardBody, isDiscardable } from "../listener/discard-body.ts";
import { responseOn } from "../../lib/node-internals/node-sockets.ts";

/** The HTTP/2 connections. */
export const multiplexed = new WeakMap<Duplex, Http2Connection>();

const NONE: readonly TrackedOutgoing[] = [];

/** Returns the response that an HTTP/1.1 connection is writing. */
export function currentResponse(socket: Duplex): TrackedResponse | undefined {
  const response = responseOn(socket);
  return response instanceof TrackedResponse ? response : undefined;
}

/**
 * Sends GOAWAY if a connection that is about to be closed is one of HTTP/2, so that its client knows which requests it
 * may send again.
 *
 * @returns whether it did; the frame is written by the next turn of the event loop.
 */
export function sayGoodbye(socket: Duplex): boolean {
  const connection = multiplexed.get(socket);
  connection?.sayGoodbye();
  return connection !== undefined;
}

/** Returns the responses under way on a connection of either version. */
export function responsesOn(socket: Duplex): Iterable<TrackedOutgoing> {
  const response = currentResponse(socket);
  return response === undefined ? (multiplexed.get(socket)?.responses ?? NONE) : [response];
}

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];

/** A response that knows its request, so that one interrupted by the parser keeps its id. */
export class TrackedResponse extends ServerResponse implements TrackedOutgoing {
  /** The `id` in envelope and log line; 0 until the request begins. */
  id = 0;
  /** Whether one of Sallyport's own answers has been written completely. */
  whole = false;
  /** The reason why Node's parser or a limit ended the request early. */
  interruption: string | undefined;
  /** The progress of the request; undefined until it begins. */
  transfer: Transfer | undefined;
  /** The permit of a forwarded request; undefined until there is one, and for Sallyport's own endpoints. */
  permit: Permit | undefined;
  /** Whether Node has released the socket, so that nothing more can be read of the request. */
  detached = false;
  /** Called when the earlier answers on the connection are out and this one may be written. */
  onTurn: (() => void) | undefined;
  #ending = false;

  /** Records why the request is about to be ended. The first reason counts. */
  blame(reason: string): void {
    this.interruption ??= reason;
    if (this.transfer !== undefined) this.transfer.abortReason ??= reason;
  }

  get isCurrent(): boolean {
    return this.socket !== null;
  }

  abort(): void {
    this.socket?.destroy();
  }

  /** Sends nothing while an earlier response is being written: Node (26) would put it in the middle of that response. */
  override writeContinue(): void {
    if (this.socket !== null) super.writeContinue();
  }

  override assignSocket(socket: Socket): void {
    super.assignSocket(socket);
    this.onTurn?.();
  }

  /**
   * Announces that the connection closes if the rest of the request is too large to be discarded (RFC 9112 §9.6). Sets the
   * standard reason phrase if none is given: Node would use that of an earlier head that could not be written.
   */
  override writeHead(status: number, reason?: string | Headers, headers?: Headers): this {
    const { req } = this;
    if (!req.complete && !this.detached && !isDiscardable(req)) this.shouldKeepAlive = false;
    return typeof reason === "string"
      ? super.writeHead(status, reason, headers)
      : super.writeHead(status, STATUS_CODES[status] ?? "", reason);
  }

  /** Sends only the head, one byte per character. Node would use the encoding of the socket. */
  override flushHeaders(): void {
    this.socket?.setDefaultEncoding("latin1");
    super.flushHeaders();
    this.socket?.setDefaultEncoding("utf8");
  }

  /**
   * Ends the answer. If the connection closes with it, first reads what the client still sends, for a while: closing a socket
   * with unread bytes resets it, and the client would lose the answer.
   */
  override end(body?: unknown, encoding?: BufferEncoding | (() => void)): this {
    // Node allows a callback instead of the encoding; nothing here uses that.
    const coding = typeof encoding === "string" ? encoding : "utf8";
    if (this.shouldKeepAlive || !this.#mayBringMore()) return super.end(body, coding);
    if (this.#ending) return this;
    this.#ending = true;
    // Separately, because the answer to HEAD has no body to be sent with.
    this.flushHeaders();
    if (body !== undefined) this.write(body, coding);
    void discardBody(this.req).then(() => super.end());
    return this;
  }

  #mayBringMore(): boolean {
    const { complete, readableEnded } = this.req;
    return !complete && !readableEnded && !this.detached && this.interruption === undefined;
  }
}
