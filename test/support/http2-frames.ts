import { once } from "node:events";
import { connect, type Socket } from "node:net";
import {
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  type Frame,
  FrameReader,
  headerBlock,
} from "../../tools/selftest/http2/http2-frames.ts";

export { END_HEADERS, END_STREAM, FRAME, frame, headerBlock };

/** The pseudo-header fields of a GET. */
export const GET: readonly (readonly [string, string])[] = [
  [":method", "GET"],
  [":scheme", "http"],
  [":authority", "localhost"],
  [":path", "/public/x"],
];

/** A connection that reads and writes frames, with prior knowledge in the clear. */
export class FrameClient implements AsyncDisposable {
  readonly socket: Socket;
  readonly frames: Frame[] = [];
  closed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    const reader = new FrameReader();
    socket.on("data", (chunk: Buffer) => this.frames.push(...reader.read(chunk)));
    socket.on("error", () => undefined).on("close", () => (this.closed = true));
  }

  /** Connects and sends the preface with empty settings. */
  static async connect({ port }: { readonly port: number }): Promise<FrameClient> {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    const client = new FrameClient(socket);
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", frame(FRAME.settings, 0, 0));
    return client;
  }

  send(...parts: (Buffer | string)[]): void {
    for (const part of parts) this.socket.write(part, "latin1");
  }

  /** Sends a request without a body. */
  get(stream: number, fields = GET): void {
    this.send(frame(FRAME.headers, END_STREAM | END_HEADERS, stream, headerBlock(fields)));
  }

  of(type: number): Frame[] {
    return this.frames.filter((each) => each.type === type);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.destroy();
  }
}
