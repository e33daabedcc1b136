import { connect, type IpcNetConnectOpts, type Socket, type TcpNetConnectOpts } from "node:net";
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  type Field,
  FRAME,
  frame,
  type Frame,
  FrameReader,
  headerBlock,
} from "../../tools/selftest/http2/http2-frames.ts";

const PREFACE_BYTES = 24;

/** A request as a careless reader collects it: every frame is appended. */
interface Collected {
  block: Buffer;
  body: string;
}

export interface CarelessRequest {
  readonly stream: number;
  readonly method: string;
  readonly path: string;
  readonly authority: string;
  /** Includes trailers. */
  readonly fields: readonly Field[];
  readonly body: string;
}

/** Answers a request on its stream. */
export type AnswerStream = (
  stream: number,
  status: number,
  fields: readonly Field[],
  body: string,
) => void;

/**
 * Reads HTTP/2 like an implementation that knows the frames but none of the rules: every frame counts for its stream,
 * the last of two fields wins, and anything that ends a stream, even a reset, completes a request.
 */
export function readCarelessly(
  socket: Socket,
  onRequest: (request: CarelessRequest, answer: AnswerStream) => void,
): void {
  const reader = new FrameReader();
  const streams = new Map<number, Collected>();
  let skip = PREFACE_BYTES;
  const answer: AnswerStream = (stream, status, fields, body) => {
    const head = headerBlock([[":status", String(status)], ...fields]);
    socket.write(frame(FRAME.headers, END_HEADERS, stream, head));
    socket.write(frame(FRAME.data, END_STREAM, stream, body));
  };
  const take = (each: Frame): void => {
    if (each.type === FRAME.settings && each.flags === 0) {
      socket.write(frame(FRAME.settings, ACK, 0));
    }
    if (each.type === FRAME.settings || each.type === FRAME.windowUpdate) return;
    const collected = streams.get(each.stream) ?? { block: Buffer.alloc(0), body: "" };
    streams.set(each.stream, collected);
    if (each.type === FRAME.data) collected.body += each.payload.toString("latin1");
    else if (each.type !== FRAME.reset) {
      collected.block = Buffer.concat([collected.block, each.payload]);
    }
    const ends = each.type !== FRAME.reset && (each.flags & END_STREAM) !== 0;
    // A client that requests a tunnel does not end its stream.
    const waits = collected.block.includes("CONNECT") || collected.block.includes("TRACE");
    if (ends || waits || each.type === FRAME.reset) {
      streams.delete(each.stream);
      onRequest(requestOf(each.stream, collected), answer);
    }
  };
  socket.setNoDelay(true).write(frame(FRAME.settings, 0, 0));
  socket.on("data", (chunk: Buffer) => {
    const rest = chunk.subarray(skip);
    skip -= chunk.length - rest.length;
    for (const each of reader.read(rest)) take(each);
  });
}

function requestOf(stream: number, { block, body }: Collected): CarelessRequest {
  const fields = literalsIn(block);
  const last = (name: string): string => fields.findLast(([each]) => each === name)?.[1] ?? "";
  return {
    stream,
    body,
    method: last(":method"),
    path: last(":path"),
    authority: last(":authority"),
    fields: fields.filter(([name]) => !name.startsWith(":")),
  };
}

/** Decodes literals without indexing (RFC 7541 §6.2.2) or Huffman coding, the only form that the self-test writes. */
export function literalsIn(block: Buffer): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const text = (): string => {
    let length = block[at++] ?? 0;
    if (length === 127) {
      for (let shift = 0, more = 128; more >= 128; shift += 7) {
        more = block[at++] ?? 0;
        length += (more & 127) << shift;
      }
    }
    at += length;
    return block.toString("latin1", at - length, at);
  };
  while (at < block.length && block[at] === 0) {
    at += 1;
    fields.push([text(), text()]);
  }
  return fields;
}

/** Forwards a request as HTTP/1.1, with no framing beyond the fields it came with, and relays every response field. */
export function translateCarelessly(
  backend: IpcNetConnectOpts | TcpNetConnectOpts,
  { stream, method, path, authority, fields, body }: CarelessRequest,
  answer: AnswerStream,
): void {
  const toBackend = connect(backend);
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const verb = method === "CONNECT" ? "GET" : method;
  const target = path.split("?")[0] ?? "";
  let answered = false;
  toBackend.on("error", () => undefined);
  toBackend.on("close", () => {
    if (!answered) answer(stream, 502, [], "");
  });
  toBackend.write(
    `${verb} ${target} HTTP/1.1\r\nHost: ${authority}\r\n${lines}\r\n${body}`,
    "latin1",
  );
  toBackend.once("data", (chunk: Buffer) => {
    answered = true;
    const [head = "", text = ""] = chunk.toString("latin1").split("\r\n\r\n");
    const [line = "", ...rest] = head.split("\r\n");
    const received = rest.map((each): Field => {
      const colon = each.indexOf(":");
      return [each.slice(0, colon).toLowerCase(), each.slice(colon + 1).trim()];
    });
    const hops = /^(?:connection|keep-alive|transfer-encoding|content-length)$/;
    const relayed = received.filter(([name]) => !hops.test(name));
    answer(stream, Number(line.split(" ")[1]), relayed, text);
    toBackend.end();
  });
}
