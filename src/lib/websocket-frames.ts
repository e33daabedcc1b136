/** Follows a WebSocket byte stream just far enough to know where a frame ends (RFC 6455 §5.2). */
export class FrameBoundary {
  /** Header bytes of the frame being read, while its length is not known yet. */
  #header: number[] = [];
  /** Bytes of the frame still to come, when its header is known. */
  #remaining = 0;

  /** Whether nothing of a frame is outstanding: a frame of ours may stand here. */
  get between(): boolean {
    return this.#remaining === 0 && this.#header.length === 0;
  }

  /** Takes the next bytes of the stream. */
  advance(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#remaining > 0) {
        const step = Math.min(this.#remaining, chunk.length - at);
        this.#remaining -= step;
        at += step;
      } else {
        this.#header.push(chunk[at] ?? 0);
        at += 1;
        this.#readHeader();
      }
    }
  }

  #readHeader(): void {
    const header = this.#header;
    const second = header[1];
    if (second === undefined) return;
    const short = second & 0x7f;
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    if (header.length < 2 + lengthBytes) return;
    const length =
      lengthBytes === 0
        ? short
        : header.slice(2, 2 + lengthBytes).reduce((sum, octet) => sum * 256 + octet, 0);
    const masked = (second & 0x80) !== 0;
    this.#remaining = length + (masked ? 4 : 0);
    this.#header = [];
  }
}

/** An unmasked close frame, as a server sends it, with a status code of RFC 6455 §7.4.1. */
export function closeFrame(code: number): Buffer {
  return Buffer.from([0x88, 2, code >> 8, code & 0xff]);
}
