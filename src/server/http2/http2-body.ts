import type { ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { BufferedBytes } from "../../core/buffered-bytes.ts";
import type { ClientReading } from "../../core/request/client-reading.ts";
import { destroyStream } from "../../lib/http/http2-ends.ts";
import { pushTo, replacePush } from "../../lib/node-internals/stream-push.ts";
import { type BlockTaker, ChunkCoalescer } from "../../lib/http/chunk-coalescer.ts";

/** The number of DATA frames that count as one unit of event-loop time. */
const FRAMES_PER_CHARGE = 64;

/** The body of a stream. All streams share the functions that Node calls, since creating closures for each takes time. */
const BODY: unique symbol = Symbol("body");

declare module "node:http2" {
  interface ServerHttp2Stream {
    [BODY]?: Http2Body;
  }
}

export interface Http2BodyOptions {
  readonly buffered: BufferedBytes;
  readonly reading: ClientReading;
}

/**
 * Bounds the body of a request, and tracks whether it is complete. The window of the stream bounds the unread bytes; each
 * DATA frame becomes a chunk, so short ones are coalesced.
 */
export class Http2Body implements BlockTaker {
  readonly #stream: ServerHttp2Stream;
  readonly #socket: Socket;
  readonly #options: Http2BodyOptions;
  readonly #coalescer = new ChunkCoalescer(this);
  #frames = 0;
  #whole: boolean;

  constructor(stream: ServerHttp2Stream, socket: Socket, options: Http2BodyOptions) {
    this.#stream = stream;
    this.#socket = socket;
    this.#options = options;
    stream[BODY] = this;
    // The body may have begun, or even ended, together with the head.
    this.#whole = stream.state.remoteClose === 1;
    const arrived: unknown = stream.readableLength > 0 ? stream.read() : null;
    if (Buffer.isBuffer(arrived)) stream.unshift(arrived);
    replacePush(stream, addToBody);
  }

  /** Whether the client has ended the body. */
  get whole(): boolean {
    return this.#whole;
  }

  /** Node passes the body to this method. */
  add(chunk: Buffer | null): boolean {
    if (chunk === null) return this.#end();
    if (this.#frames % FRAMES_PER_CHARGE === 0) this.#options.reading.charge(this.#socket);
    this.#frames += 1;
    this.#coalescer.add(chunk);
    return this.#stream.readableLength < this.#stream.readableHighWaterMark;
  }

  /** Node also ends a body when the client resets the stream without an error: a truncated body would pass as complete. */
  #end(): boolean {
    this.#coalescer.flush();
    if (!this.#whole && this.#stream.closed) {
      destroyStream(this.#stream, this.#stream.rstCode ?? 0);
      return false;
    }
    this.#whole = true;
    return pushTo(this.#stream, null);
  }

  takeBlock(block: Buffer): void {
    if (this.#stream.destroyed) return;
    pushTo(this.#stream, block);
    if (this.#stream.readableLength > 0) this.#options.buffered.measure(this.#socket);
  }
}

/** Replaces `push` of a stream. */
function addToBody(this: ServerHttp2Stream, chunk: Buffer | null): boolean {
  return this[BODY]?.add(chunk) ?? false;
}
