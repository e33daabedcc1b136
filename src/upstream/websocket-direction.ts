import type { Socket } from "node:net";
import { FrameBoundary } from "../lib/websocket-frames.ts";

/** A frame of ours that goes out behind the one that is under way. */
interface Ending {
  readonly frame: Buffer;
  readonly sent: () => void;
}

/** One direction of a WebSocket that http-proxy-3 pipes; it knows where a frame of ours may stand. */
export class Direction {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #frames = new FrameBoundary();
  #ending: Ending | undefined;
  #ended = false;

  constructor(from: Socket, to: Socket) {
    this.#from = from;
    this.#to = to;
  }

  /** Told of everything that arrives, behind the pipe. */
  moved(chunk: Buffer): void {
    if (this.#ending === undefined) this.#frames.advance(chunk);
    else if (!this.#ended) this.#finish(chunk, this.#ending);
  }

  /** Lets the frame that is under way pass, then this one, and nothing behind it. A second call does nothing. */
  endWith(frame: Buffer, sent = (): void => undefined): void {
    if (this.#ending !== undefined) return;
    this.#ending = { frame, sent };
    this.#from.unpipe(this.#to);
    this.#from.resume();
    if (this.#frames.between) this.#end(this.#ending);
  }

  /** As the pipe did, as long as this frame is under way. */
  #finish(chunk: Buffer, ending: Ending): void {
    const rest = chunk.subarray(0, this.#frames.finish(chunk));
    if (this.#to.writable && !this.#to.write(rest)) {
      this.#from.pause();
      this.#to.once("drain", () => this.#from.resume());
    }
    if (this.#frames.between) this.#end(ending);
  }

  #end({ frame, sent }: Ending): void {
    this.#ended = true;
    if (this.#to.writable) this.#to.write(frame);
    sent();
  }
}
