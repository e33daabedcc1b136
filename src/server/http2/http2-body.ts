import type { ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { BufferedBytes } from "../../core/buffered-bytes.ts";
import type { ClientReading } from "../../core/request/client-reading.ts";
import { ChunkCoalescer } from "../../lib/http/chunk-coalescer.ts";

/** DATA frames that count as one unit of event-loop time. */
const FRAMES_PER_CHARGE = 64;

export interface Http2BodyOptions {
  readonly buffered: BufferedBytes;
  readonly reading: ClientReading;
}

/**
 * Bounds the body of a request, and knows whether it is whole. How many bytes wait unread is bounded by the window of the
 * stream; each DATA frame becomes a chunk, so short ones are coalesced.
 */
export class Http2Body {
  readonly #stream: ServerHttp2Stream;
  readonly #socket: Socket;
  readonly #options: Http2BodyOptions;
  readonly #push: (chunk: Buffer | null) => boolean;
  readonly #coalescer = new ChunkCoalescer((block) => this.#take(block));
  #frames = 0;
  #whole: boolean;

  constructor(stream: ServerHttp2Stream, socket: Socket, options: Http2BodyOptions) {
    this.#stream = stream;
    this.#socket = socket;
    this.#options = options;
    this.#push = stream.push.bind(stream);
    // What has arrived together with the head.
    this.#whole = stream.state.remoteClose === 1;
    const arrived: unknown = stream.readableLength > 0 ? stream.read() : null;
    if (Buffer.isBuffer(arrived)) stream.unshift(arrived);
    stream.push = this.#add;
  }

  /** Whether the client has ended the body. */
  get whole(): boolean {
    return this.#whole;
  }

  /** Node passes the body to this method. */
  readonly #add = (chunk: Buffer | null): boolean => {
    if (chunk === null) return this.#end();
    if (this.#frames % FRAMES_PER_CHARGE === 0) this.#options.reading.charge(this.#socket);
    this.#frames += 1;
    this.#coalescer.add(chunk);
    return this.#stream.readableLength < this.#stream.readableHighWaterMark;
  };

  /** Node ends a body also when the client resets the stream without an error: what is left would pass as the whole. */
  #end(): boolean {
    this.#coalescer.flush();
    if (!this.#whole && this.#stream.closed) {
      // Not at once: Node goes on with the stream behind this call.
      process.nextTick(() => this.#stream.destroy());
      return false;
    }
    this.#whole = true;
    return this.#push(null);
  }

  #take(block: Buffer): void {
    if (this.#stream.destroyed) return;
    this.#push(block);
    if (this.#stream.readableLength > 0) this.#options.buffered.measure(this.#socket);
  }
}
