import type { Socket } from "node:net";

/**
 * Pauses and resumes reading from a client. A plain `socket.pause()` does not last: Node resumes the socket when
 * someone reads a body or a response is finished. Neither stops what has been read already: the rest of a read, at
 * most 64 KiB, is still parsed.
 */
export class ReadPause {
  readonly #socket: Socket;
  #paused = false;
  #listening = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  pause(): void {
    this.#paused = true;
    if (!this.#listening) this.#socket.on("resume", this.#onResume);
    this.#listening = true;
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#socket.resume();
  }

  /** Node's own listener has resumed reading, and no data has arrived yet. */
  readonly #onResume = (): void => {
    if (this.#paused) this.#socket.pause();
  };
}
