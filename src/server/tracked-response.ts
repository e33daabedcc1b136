import type { OutgoingHttpHeader, OutgoingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import { ServerResponse } from "../lib/node-http.ts";
import { discardRest, isDiscardable } from "./discard-rest.ts";

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];

/** A response that knows which request it belongs to, so that one interrupted by the parser keeps its id. */
export class TrackedResponse extends ServerResponse {
  /** The `id` of the envelope and of the log line; 0 until the request has begun. */
  id = 0;
  /** An answer of our own has been written from head to end. */
  whole = false;
  /** The reason word, when Node's parser or a time limit ended the request while it was under way. */
  interruption: string | undefined;
  /** Nothing more can be read of the request: its socket is no longer Node's. */
  detached = false;
  /** Called when the answers before this one are out, and its own may go. */
  onTurn: (() => void) | undefined;
  #ending = false;

  override assignSocket(socket: Socket): void {
    super.assignSocket(socket);
    this.onTurn?.();
  }

  /** Says that the connection will end when more of the request is announced than is read away (RFC 9112 §9.6). */
  override writeHead(status: number, reason?: string | Headers, headers?: Headers): this {
    const { req } = this;
    if (!req.complete && !this.detached && !isDiscardable(req)) this.shouldKeepAlive = false;
    return typeof reason === "string"
      ? super.writeHead(status, reason, headers)
      : super.writeHead(status, reason);
  }

  /**
   * Ends the answer. Where the connection ends with it, what the client still sends is read first, for a while: closing a
   * socket with unread bytes resets it, and the client would lose the answer that stands before the reset.
   */
  override end(body?: unknown, encoding?: BufferEncoding | (() => void)): this {
    // What Node allows, and nobody here does: a callback in the place of the encoding.
    const coding = typeof encoding === "string" ? encoding : "utf8";
    if (this.shouldKeepAlive || !this.#mayBringMore()) return super.end(body, coding);
    if (this.#ending) return this;
    this.#ending = true;
    // By itself, since the answer to HEAD has nothing behind it that would take the head along.
    this.flushHeaders();
    if (body !== undefined) this.write(body, coding);
    void discardRest(this.req).then(() => super.end());
    return this;
  }

  #mayBringMore(): boolean {
    const { complete, readableEnded } = this.req;
    return !complete && !readableEnded && !this.detached && this.interruption === undefined;
  }
}
