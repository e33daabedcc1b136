import type { Duplex } from "node:stream";
import { FrameBoundary } from "../../lib/http/websocket-frames.ts";

/** A close frame to send after the current frame. */
interface Ending {
  readonly frame: Buffer;
  readonly sent: () => void;
}

/** One direction of a WebSocket that is piped. It knows where a frame may be inserted. */
export class WebSocketDirection {
  readonly #from: Duplex;
  readonly #to: Duplex;
  readonly #frames = new FrameBoundary();
  #ending: Ending | undefined;
  #ended = false;

  constructor(from: Duplex, to: Duplex) {
    this.#from = from;
    this.#to = to;
  }

  /** Follows the data that the pipe has passed. */
  moved(chunk: Buffer): void {
    if (this.#ending === undefined) this.#frames.advance(chunk);
    else if (!this.#ended) this.#finish(chunk, this.#ending);
  }

  /** Completes the current frame, sends this one, and nothing after it. Further calls do nothing. */
  endWith(frame: Buffer, sent = (): void => undefined): void {
    if (this.#ending !== undefined) return;
    this.#ending = { frame, sent };
    this.#from.unpipe(this.#to);
    this.#from.resume();
    if (this.#frames.atBoundary) this.#end(this.#ending);
  }

  /** Passes on data as the pipe did, until the end of the current frame. */
  #finish(chunk: Buffer, ending: Ending): void {
    const rest = chunk.subarray(0, this.#frames.finish(chunk));
    if (this.#to.writable && !this.#to.write(rest)) {
      this.#from.pause();
      this.#to.once("drain", () => this.#from.resume());
    }
    if (this.#frames.atBoundary) this.#end(ending);
  }

  #end({ frame, sent }: Ending): void {
    this.#ended = true;
    if (this.#to.writable) this.#to.write(frame);
    sent();
  }
}
