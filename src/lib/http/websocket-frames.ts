import { randomBytes } from "node:crypto";

/** Parses a WebSocket byte stream just far enough to find frame boundaries (RFC 6455 §5.2). */
export class FrameBoundary {
  /** Header bytes of the current frame until its length is known. */
  #header: number[] = [];
  /** Remaining bytes of the current frame once its header is known. */
  #remaining = 0;

  /** Whether the stream is between two frames, where another frame may be inserted. */
  get atBoundary(): boolean {
    return this.#remaining === 0 && this.#header.length === 0;
  }

  /** Consumes the next bytes of the stream. */
  advance(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) {
      const second = chunk[at + 1];
      if (this.#remaining > 0) {
        const step = Math.min(this.#remaining, chunk.length - at);
        this.#remaining -= step;
        at += step;
      } else if (second !== undefined && this.#header.length === 0 && shortLength(second) < 126) {
        // A fast path: a client may send millions of small frames.
        this.#remaining = shortLength(second) + maskBytes(second);
        at += 2;
      } else {
        this.#header.push(chunk[at] ?? 0);
        at += 1;
        this.#readHeader();
      }
    }
  }

  /**
   * Consumes bytes up to the end of the current frame.
   *
   * @returns the number of consumed bytes.
   */
  finish(chunk: Uint8Array): number {
    let at = 0;
    while (at < chunk.length && !this.atBoundary) {
      // Consume a header byte by byte.
      const end = Math.min(at + Math.max(this.#remaining, 1), chunk.length);
      this.advance(chunk.subarray(at, end));
      at = end;
    }
    return at;
  }

  #readHeader(): void {
    const header = this.#header;
    const second = header[1];
    if (second === undefined) return;
    const short = shortLength(second);
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    if (header.length < 2 + lengthBytes) return;
    const length =
      lengthBytes === 0
        ? short
        : header.slice(2, 2 + lengthBytes).reduce((sum, octet) => sum * 256 + octet, 0);
    this.#remaining = length + maskBytes(second);
    this.#header = [];
  }
}

/** The length field in the second byte of a header: the length itself, or 126 or 127 for an extended length. */
function shortLength(second: number): number {
  return second & 0x7f;
}

function maskBytes(second: number): number {
  return (second & 0x80) === 0 ? 0 : 4;
}

/**
 * Returns a close frame as a server sends it.
 *
 * @param code a status code of RFC 6455 §7.4.1.
 * @param reason at most 123 bytes of UTF-8.
 */
export function closeFrame(code: number, reason = ""): Buffer {
  const payload = closePayload(code, reason);
  return Buffer.concat([Buffer.from([0x88, payload.length]), payload]);
}

/** Returns a masked close frame as a client sends it (RFC 6455 §5.3). */
export function maskedCloseFrame(code: number, reason = ""): Buffer {
  const payload = closePayload(code, reason);
  const key = randomBytes(4);
  const masked = payload.map((byte, index) => byte ^ (key[index % 4] ?? 0));
  return Buffer.concat([Buffer.from([0x88, 0x80 | payload.length]), key, masked]);
}

function closePayload(code: number, reason: string): Buffer {
  return Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(reason)]);
}
