import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { listeningPort } from "./listening-port.ts";

/** Frame types (RFC 9113 §6) and flags. */
export const DATA = 0;
export const HEADERS = 1;
export const RST_STREAM = 3;
const SETTINGS = 4;
export const PUSH_PROMISE = 5;
export const PING = 6;
const GOAWAY = 7;
export const CONTINUATION = 9;
export const END_STREAM = 1;
export const ACK = 1;
export const END_HEADERS = 4;

const PREFACE_BYTES = 24;

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** Encodes a frame. */
export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Encodes a header block of literals without indexing (RFC 7541 §6.2.2). Names and values must be under 127 bytes. */
export function fieldBlock(fields: readonly (readonly [string, string])[]): Buffer {
  const literal = (text: string): Buffer =>
    Buffer.concat([Buffer.from([text.length]), Buffer.from(text, "latin1")]);
  return Buffer.concat(
    fields.flatMap(([name, value]) => [Buffer.from([0]), literal(name), literal(value)]),
  );
}

/** Encodes a HEADERS frame with a complete header block. */
export function head(
  stream: number,
  fields: readonly (readonly [string, string])[],
  flags = 0,
): Buffer {
  return frame(HEADERS, END_HEADERS | flags, stream, fieldBlock(fields));
}

/** Encodes a complete small response. */
export function answer(stream: number, text = "ok"): Buffer {
  return Buffer.concat([
    head(stream, [[":status", "200"]]),
    frame(DATA, END_STREAM, stream, Buffer.from(text)),
  ]);
}

export function rst(stream: number, code: number): Buffer {
  return frame(RST_STREAM, 0, stream, uint32(code));
}

export function goaway(lastStream: number, code: number): Buffer {
  return frame(GOAWAY, 0, 0, Buffer.concat([uint32(lastStream), uint32(code)]));
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Encodes a SETTINGS frame. @param pairs of identifier and value. */
export function settings(...pairs: readonly (readonly [id: number, value: number])[]): Buffer {
  const entries = pairs.map(([id, value]) => {
    const bytes = Buffer.alloc(6);
    bytes.writeUInt16BE(id, 0);
    bytes.writeUInt32BE(value, 2);
    return bytes;
  });
  return frame(SETTINGS, 0, 0, Buffer.concat(entries));
}

export interface RawHttp2Backend extends AsyncDisposable {
  readonly url: string;
  /** All frames of all connections, in the order of arrival. */
  readonly frames: readonly Frame[];
  readonly sockets: readonly Socket[];
}

/**
 * Starts a backend that works with frames. It sends SETTINGS and acknowledges the peer's; the script does everything
 * else.
 *
 * @param script called with each frame. @param first the SETTINGS frame to start with.
 */
export async function startRawHttp2Backend(
  script: (frame: Frame, socket: Socket, connection: number) => void,
  first: Buffer = settings(),
): Promise<RawHttp2Backend> {
  const frames: Frame[] = [];
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    const connection = sockets.push(socket) - 1;
    let rest = Buffer.alloc(0);
    let skipped = false;
    socket.on("error", () => undefined);
    socket.write(first);
    socket.on("data", (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      if (!skipped && rest.length < PREFACE_BYTES) return;
      if (!skipped) rest = rest.subarray(PREFACE_BYTES);
      skipped = true;
      while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
        const length = rest.readUIntBE(0, 3);
        const [type = 0, flags = 0] = [rest[3], rest[4]];
        const stream = rest.readUInt32BE(5) & 0x7f_ff_ff_ff;
        const seen: Frame = { type, flags, stream, payload: rest.subarray(9, 9 + length) };
        rest = rest.subarray(9 + length);
        frames.push(seen);
        if (type === SETTINGS && flags === 0) socket.write(frame(SETTINGS, ACK, 0));
        script(seen, socket, connection);
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${listeningPort(server)}`,
    frames,
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
