/**
 * The cheapest gRPC backend: over HTTP/2 without TLS, it answers each call with the same message, from prepared frames. It
 * does not decode header sections, so it costs a fraction of what any proxy costs. Prints its port. With the argument `hold`,
 * it sends the head of an answer at once, and the rest when the client has ended its stream.
 */
import { createServer, type Socket } from "node:net";
import { GRPC_ANSWER } from "./grpc-answer.ts";

/** Properties of frames (RFC 9113 §4.1, §6). */
const HEAD_BYTES = 9;
const PREFACE_BYTES = 24;
const TYPE = { data: 0, headers: 1, settings: 4, ping: 6, windowUpdate: 8 } as const;
const END_STREAM = 1;
const END_HEADERS = 4;
const ACK = 1;
/** The largest increment of a connection's window, after which nothing has to be counted. */
const WINDOW = 2 ** 31 - 1 - 65_535;

/** Encodes a field without compression (RFC 7541 §6.2.2). */
const field = (name: string, value: string): Buffer =>
  Buffer.from(
    `\0${String.fromCharCode(name.length)}${name}${String.fromCharCode(value.length)}${value}`,
  );
const HEAD = Buffer.concat([Buffer.from([0x88]), field("content-type", "application/grpc")]);
const TRAILERS = Buffer.concat([field("grpc-status", "0"), field("grpc-message", "")]);

const holds = process.argv[2] === "hold";

function frame(type: number, flags: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  return Buffer.concat([head, payload]);
}

const HEADERS_FRAME = frame(TYPE.headers, END_HEADERS, HEAD);
const REST = [
  frame(TYPE.data, 0, GRPC_ANSWER),
  frame(TYPE.headers, END_HEADERS + END_STREAM, TRAILERS),
];

function onStream(frame: Buffer, stream: number): Buffer {
  const copy = Buffer.from(frame);
  copy.writeUInt32BE(stream, 5);
  return copy;
}

/** Returns the frames that answer a frame. */
function answerTo(type: number, flags: number, stream: number, payload: Buffer): Buffer[] {
  if (type === TYPE.settings && (flags & ACK) === 0)
    return [frame(TYPE.settings, ACK, Buffer.alloc(0))];
  if (type === TYPE.ping && (flags & ACK) === 0) return [frame(TYPE.ping, ACK, payload)];
  if (type !== TYPE.headers && type !== TYPE.data) return [];
  const isEnd = (flags & END_STREAM) !== 0;
  const sendsHead = holds ? type === TYPE.headers : isEnd;
  const frames = [...(sendsHead ? [HEADERS_FRAME] : []), ...(isEnd ? REST : [])];
  return frames.map((each) => onStream(each, stream));
}

function serve(socket: Socket): void {
  const window = Buffer.alloc(4);
  window.writeUInt32BE(WINDOW);
  socket.setNoDelay(true).on("error", () => socket.destroy());
  socket.write(
    Buffer.concat([frame(TYPE.settings, 0, Buffer.alloc(0)), frame(TYPE.windowUpdate, 0, window)]),
  );
  let left: Buffer = Buffer.alloc(0);
  let skip = PREFACE_BYTES;
  socket.on("data", (chunk: Buffer) => {
    left = left.length === 0 ? chunk : Buffer.concat([left, chunk]);
    const answers: Buffer[] = [];
    let at = skip;
    while (left.length >= at + HEAD_BYTES) {
      const end = at + HEAD_BYTES + left.readUIntBE(at, 3);
      if (left.length < end) break;
      const stream = left.readUInt32BE(at + 5);
      const payload = left.subarray(at + HEAD_BYTES, end);
      answers.push(...answerTo(left.readUInt8(at + 3), left.readUInt8(at + 4), stream, payload));
      at = end;
    }
    if (left.length >= at) {
      left = left.subarray(at);
      skip = 0;
    }
    if (answers.length > 0) socket.write(Buffer.concat(answers));
  });
}

const server = createServer(serve);
server.listen({ port: 0, host: "127.0.0.1", backlog: 4096 }, () => {
  const address = server.address();
  console.log(`listening ${typeof address === "object" ? address?.port : 0}`);
});
