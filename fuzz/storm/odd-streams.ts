import type { Dice } from "../../soak/dice.ts";
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  type Field,
  FRAME,
  frame,
  headerBlock,
} from "../../tools/selftest/http2/http2-frames.ts";
import type { Kinds } from "./kinds.ts";
import { choose, FORBIDDEN, lateness, ODD_STATUSES, type Step } from "./script.ts";

const PUSH_PROMISE = 5;
const SETTING = {
  table: 1,
  push: 2,
  streams: 3,
  window: 4,
  frame: 5,
  list: 6,
  connect: 8,
} as const;

/** Returns the frames with which an odd backend answers a request on a stream, in segments. */
export function oddStreamAnswer(dice: Dice, kinds: Kinds, stream: number): Step[] {
  const parts = choose<(dice: Dice, stream: number) => Buffer[]>(
    dice,
    kinds,
    { heads, forbidden, interim, statuses, resets, half, frames, silence, floods, goaway, windows },
    ordinary,
  )(dice, stream);
  parts.push(...ending(dice, kinds, stream, parts));
  return segments(dice, kinds, parts);
}

/** Returns the frames with which an odd backend begins a connection. */
export function oddStart(dice: Dice, kinds: Kinds): Buffer {
  const tricks = kinds.has("windows") && dice.between(0, 3) === 0;
  if (!tricks) return settings([SETTING.streams, 100], [SETTING.connect, 1]);
  return dice.pick([
    settings([SETTING.window, 0]),
    settings([SETTING.window, dice.between(1, 100)], [SETTING.frame, 16_384]),
    settings([SETTING.window, 0x7fffffff], [SETTING.table, 0]),
    settings([SETTING.streams, dice.between(0, 2)]),
    settings([SETTING.list, dice.between(0, 200)]),
    settings([SETTING.push, dice.between(0, 2)]),
  ]);
}

function settings(...pairs: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(6 * pairs.length);
  for (const [i, [id, value]] of pairs.entries()) {
    payload.writeUInt16BE(id, 6 * i);
    payload.writeUInt32BE(value, 6 * i + 2);
  }
  return frame(FRAME.settings, 0, 0, payload);
}

export function uint32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, 4 * i);
  return bytes;
}

function head(stream: number, fields: readonly Field[], flags = END_HEADERS): Buffer {
  return frame(FRAME.headers, flags, stream, headerBlock(fields));
}

function ordinary(dice: Dice, stream: number): Buffer[] {
  const status = dice.pick(["200", "200", "201", "404", "500", "304", "204"]);
  const length: Field[] = dice.pick<Field[]>([[], [], [["content-length", "3"]]]);
  return [head(stream, [[":status", status], ["x-odd", "1"], ...length])];
}

function heads(dice: Dice, stream: number): Buffer[] {
  const odd: Field[] = dice.pick<Field[]>([
    [[":status", dice.pick(ODD_STATUSES)]],
    [
      [":status", "200"],
      ["trailer", "content-length"],
    ],
    [
      [":status", "200"],
      ["content-length", dice.pick(["-1", "3, 3", "9999999999999999999", "x"])],
    ],
    [
      [":status", "200"],
      ["content-length", "3"],
      ["content-length", "4"],
    ],
    [
      [":status", "200"],
      ["X-Upper", "1"],
    ],
    [
      [":status", "200"],
      ["x-control", "a\u0000b"],
    ],
    [
      [":status", "200"],
      ["x-control", "a\u007fb"],
    ],
    [
      [":status", "200"],
      ["x:colon", "1"],
    ],
    [
      [":status", "200"],
      ["", "1"],
    ],
    [
      [":status", "200"],
      [":status", "201"],
    ],
    [
      ["x-first", "1"],
      [":status", "200"],
    ],
    [["x-only", "1"]],
    [
      [":status", "200"],
      ["x-long", "a".repeat(dice.between(10_000, 30_000))],
    ],
    [[":status", "200"], ...Array.from({ length: 300 }, (_, i): Field => [`x-${i}`, "1"])],
    [
      [":status", "200"],
      ["location", dice.pick(["http://[", "//\u00ff", "\u00a0"])],
    ],
    [
      [":status", "200"],
      ["set-cookie", dice.pick(["", "=", "a=b; path=\u00ff"])],
    ],
  ]);
  // Longer than a frame may be without CONTINUATION: a fault of its own.
  return [head(stream, odd)];
}

function forbidden(dice: Dice, stream: number): Buffer[] {
  return [head(stream, [[":status", "200"], dice.pick(FORBIDDEN)])];
}

function interim(dice: Dice, stream: number): Buffer[] {
  const count = dice.pick([1, 3, 17, 17, 40]);
  const status = dice.pick(["100", "102", "103", "103", "199"]);
  const link: Field[] = dice.pick<Field[]>([[], [["link", "</a>; rel=preload"]]]);
  const all = Array.from({ length: count }, () => head(stream, [[":status", status], ...link]));
  return [...all, ...ordinary(dice, stream)];
}

function statuses(dice: Dice, stream: number): Buffer[] {
  return [head(stream, [[":status", dice.pick(["503", "503", "502", "504"])]])];
}

function resets(dice: Dice, stream: number): Buffer[] {
  const reset = frame(
    FRAME.reset,
    0,
    stream,
    uint32(dice.pick([0, 1, 2, 5, 7, 8, 11, 13, 0xffff])),
  );
  const data = frame(FRAME.data, 0, stream, "abc");
  return dice.pick([
    [reset],
    [...ordinary(dice, stream), reset],
    [...ordinary(dice, stream), data, reset],
    [reset, ...ordinary(dice, stream)],
    [reset, reset],
    [frame(FRAME.data, END_STREAM, stream, ""), reset],
  ]);
}

function goaway(dice: Dice, stream: number): Buffer[] {
  const last = dice.pick([0, stream, stream - 2, 0x7fffffff]);
  const code = dice.pick([0, 0, 1, 2, 11]);
  const away = frame(FRAME.goAway, 0, 0, uint32(Math.max(last, 0), code));
  return dice.pick([[away], [away, ...ordinary(dice, stream)], [...ordinary(dice, stream), away]]);
}

function windows(dice: Dice, stream: number): Buffer[] {
  const trick = dice.pick([
    settings([SETTING.window, 0]),
    settings([SETTING.window, 0x7fffffff]),
    settings([SETTING.window, 1]),
    frame(FRAME.windowUpdate, 0, stream, uint32(0)),
    frame(FRAME.windowUpdate, 0, stream, uint32(0x7fffffff)),
    frame(FRAME.windowUpdate, 0, 0, uint32(0x7fffffff)),
    frame(FRAME.windowUpdate, 0, stream, uint32(1)),
  ]);
  return [trick, ...ordinary(dice, stream)];
}

function half(dice: Dice, stream: number): Buffer[] {
  const [whole = Buffer.alloc(0)] = ordinary(dice, stream);
  return dice.pick([
    [whole.subarray(0, dice.between(1, whole.length - 1))],
    [whole, frame(FRAME.data, 0, stream, "abcdefgh").subarray(0, dice.between(1, 16))],
    [head(stream, [[":status", "200"]], 0)],
    [whole, frame(FRAME.data, 0, stream, Buffer.alloc(20_000))],
  ]);
}

function frames(dice: Dice, stream: number): Buffer[] {
  const one = (): Buffer =>
    dice.pick([
      frame(FRAME.ping, 0, 0, Buffer.alloc(8)),
      frame(FRAME.ping, ACK, 0, Buffer.alloc(8)),
      frame(FRAME.ping, 0, 0, Buffer.alloc(3)),
      frame(FRAME.settings, ACK, 0),
      frame(FRAME.priority, 0, stream, Buffer.alloc(5)),
      frame(FRAME.continuation, END_HEADERS, stream),
      frame(FRAME.data, 0, stream, ""),
      frame(FRAME.data, 0, stream + 2, "abc"),
      frame(FRAME.data, END_STREAM, stream, ""),
      frame(
        FRAME.headers,
        END_HEADERS | END_STREAM,
        stream + 100,
        headerBlock([[":status", "200"]]),
      ),
      frame(
        PUSH_PROMISE,
        END_HEADERS,
        stream,
        Buffer.concat([uint32(2), headerBlock([[":path", "/"]])]),
      ),
      frame(dice.between(10, 255), dice.between(0, 255), stream, "unknown"),
      Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"),
    ]);
  const some = Array.from({ length: dice.pick([1, 1, 2, 30]) }, one);
  return dice.pick([
    [...some, ...ordinary(dice, stream)],
    [...ordinary(dice, stream), ...some],
  ]);
}

function silence(dice: Dice, stream: number): Buffer[] {
  return dice.pick([[], [], ordinary(dice, stream)]);
}

function floods(dice: Dice, stream: number): Buffer[] {
  const [first = Buffer.alloc(0)] = ordinary(dice, stream);
  return dice.pick([
    [
      first,
      ...Array.from({ length: 3 }, () => frame(FRAME.data, 0, stream, Buffer.alloc(16_000, 120))),
    ],
    [
      first,
      ...Array.from({ length: dice.between(50, 900) }, () => frame(FRAME.data, 0, stream, "x")),
    ],
    [first, ...Array.from({ length: 100 }, () => frame(FRAME.data, 0, stream, ""))],
  ]);
}

/** Returns how the stream ends. */
function ending(dice: Dice, kinds: Kinds, stream: number, begun: readonly Buffer[]): Buffer[] {
  if (begun.length === 0) return [];
  const last = frame(FRAME.data, END_STREAM, stream, "abc");
  const usual = (): Buffer[] => [last];
  return choose<() => Buffer[]>(
    dice,
    kinds,
    {
      endings: () => [frame(FRAME.data, END_STREAM, stream, "")],
      trailers: () => [trailers(dice, kinds, stream)],
      silence: () => [],
      early: () => [last, frame(FRAME.reset, 0, stream, uint32(0))],
      resets: () => [frame(FRAME.reset, 0, stream, uint32(dice.pick([0, 2, 8])))],
    },
    usual,
  )();
}

function trailers(dice: Dice, kinds: Kinds, stream: number): Buffer {
  const odd: Field[] = [
    ["grpc-status", "0"],
    [":status", "200"],
    ["content-length", "3"],
    ["x-trailer", "a\u0000b"],
    ...(kinds.has("forbidden") ? FORBIDDEN : []),
  ];
  return head(stream, [["x-trailer", "1"], dice.pick(odd)], END_HEADERS | END_STREAM);
}

/** Puts frames into segments: all in one, or each in its own. */
function segments(dice: Dice, kinds: Kinds, parts: readonly Buffer[]): Step[] {
  const close = choose<Step["close"]>(
    dice,
    kinds,
    { resets: "rst", goaway: "fin", windows: "deaf" },
    undefined,
  );
  const end = dice.between(0, 4) === 0 ? close : undefined;
  const first = kinds.has("early") ? lateness(dice) : dice.between(20, 200);
  // An ending alone in its segment is not the kind `endings`.
  const together = dice.between(0, 2) > 0;
  if (together) return [{ afterMs: first, bytes: Buffer.concat(parts), close: end }];
  const gap = dice.between(0, 30);
  const apart = parts.map((bytes, i): Step => ({
    afterMs: i === 0 ? first : i < 8 ? gap : 0,
    bytes,
  }));
  return [...apart, { afterMs: 0, bytes: Buffer.alloc(0), close: end }];
}
