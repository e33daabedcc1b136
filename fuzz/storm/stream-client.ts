import type { Socket } from "node:net";
import {
  ACK,
  END_STREAM,
  FRAME,
  frame,
  type Frame,
  FrameReader,
} from "../../tools/selftest/http2/http2-frames.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
/** The initial window (RFC 9113 §6.9.2). */
const WINDOW = 65_535;

/** The client's end of HTTP/2, which leaves everything but acknowledgements and windows to the caller. */
export class StreamClient {
  readonly #socket: Socket;
  readonly #credit = new Map<number, number>([[0, WINDOW]]);
  readonly #grants: boolean;
  /** Streams without a complete answer. */
  readonly open = new Set<number>();

  /** @param grants whether it lets the other side send more as it reads. */
  constructor(socket: Socket, grants: boolean) {
    this.#socket = socket;
    this.#grants = grants;
    const reader = new FrameReader();
    socket.on("data", (bytes: Buffer) => {
      for (const each of reader.read(bytes)) this.#take(each);
    });
  }

  /** Returns the bytes that begin a connection. @param window of each stream. */
  static beginning(window: number): Buffer {
    const setting = Buffer.alloc(6);
    setting.writeUInt16BE(4, 0);
    setting.writeUInt32BE(window, 2);
    return Buffer.concat([PREFACE, frame(FRAME.settings, 0, 0, setting)]);
  }

  send(...parts: readonly Buffer[]): void {
    if (this.#socket.writable) this.#socket.write(Buffer.concat(parts));
  }

  /** Sends a part of a body if the windows allow. @returns whether they did. */
  data(stream: number, part: Buffer, flags = 0): boolean {
    const [whole, own] = [this.#credit.get(0) ?? 0, this.#credit.get(stream) ?? WINDOW];
    if (part.length > Math.min(whole, own)) return false;
    this.#credit.set(0, whole - part.length).set(stream, own - part.length);
    this.send(frame(FRAME.data, flags, stream, part));
    return true;
  }

  #take({ type, flags, stream, payload }: Frame): void {
    if (type === FRAME.settings && (flags & ACK) === 0) this.send(frame(FRAME.settings, ACK, 0));
    if (type === FRAME.ping && (flags & ACK) === 0) this.send(frame(FRAME.ping, ACK, 0, payload));
    if (type === FRAME.windowUpdate && payload.length === 4) {
      this.#credit.set(stream, (this.#credit.get(stream) ?? WINDOW) + payload.readUInt32BE(0));
    }
    if (type === FRAME.reset) this.open.delete(stream);
    if ((type === FRAME.headers || type === FRAME.data) && (flags & END_STREAM) !== 0) {
      this.open.delete(stream);
    }
    if (type === FRAME.data && payload.length > 0 && this.#grants) {
      const credit = Buffer.alloc(4);
      credit.writeUInt32BE(payload.length);
      this.send(
        frame(FRAME.windowUpdate, 0, 0, credit),
        frame(FRAME.windowUpdate, 0, stream, credit),
      );
    }
  }
}
