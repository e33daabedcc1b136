import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** Types of frames (RFC 9113 §6). */
export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;
export const END_STREAM = 1;
export const END_HEADERS = 4;

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** One frame, well formed or not. */
export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Buffer | string = "",
): Buffer {
  const content = typeof payload === "string" ? Buffer.from(payload, "latin1") : payload;
  const head = Buffer.alloc(9);
  head.writeUIntBE(content.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, content]);
}

/** A header block in literals without indexing (RFC 7541 §6.2.2). */
export function headerBlock(fields: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(
    fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]),
  );
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, "latin1");
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  for (; rest >= 128; rest >>= 7) length.push((rest & 127) | 128);
  return Buffer.concat([Buffer.from([...length, rest]), bytes]);
}

/** The pseudo-header fields of a GET. */
export const GET: readonly (readonly [string, string])[] = [
  [":method", "GET"],
  [":scheme", "http"],
  [":authority", "localhost"],
  [":path", "/public/x"],
];

/** A connection that speaks frames, in the clear by prior knowledge. */
export class FrameClient implements AsyncDisposable {
  readonly socket: Socket;
  readonly frames: Frame[] = [];
  closed = false;
  #rest: Buffer = Buffer.alloc(0);

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("error", () => undefined).on("close", () => (this.closed = true));
  }

  /** Connects, and sends the preface with empty settings. */
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

  #read(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= 9) {
      const length = this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < 9 + length) return;
      this.frames.push({
        type: this.#rest.readUInt8(3),
        flags: this.#rest.readUInt8(4),
        stream: this.#rest.readUInt32BE(5) & 0x7fffffff,
        payload: Buffer.from(this.#rest.subarray(9, 9 + length)),
      });
      this.#rest = this.#rest.subarray(9 + length);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.destroy();
  }
}
