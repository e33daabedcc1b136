import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  closeFrame,
  FrameBoundary,
  maskedCloseFrame,
} from "../../src/upstream/websocket/open-websocket.ts";

/** Creates a frame according to RFC 6455 §5.2, with its length in the shortest form. */
function frame(payloadBytes: number, masked: boolean): Buffer {
  const mark = masked ? 0x80 : 0;
  const head =
    payloadBytes < 126
      ? Buffer.from([0x82, mark | payloadBytes])
      : payloadBytes < 65_536
        ? Buffer.from([0x82, mark | 126, payloadBytes >> 8, payloadBytes & 0xff])
        : Buffer.concat([Buffer.from([0x82, mark | 127]), bigEndian(payloadBytes)]);
  // Bytes that would be valid headers if they were parsed as such.
  return Buffer.concat([head, Buffer.alloc(masked ? 4 : 0), Buffer.alloc(payloadBytes, 0x81)]);
}

function bigEndian(length: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(length));
  return bytes;
}

const length = fc.oneof(
  fc.constantFrom(0, 1, 125, 126, 127, 65_535, 65_536, 65_537),
  fc.integer({ min: 0, max: 300 }),
);
const frames = fc.array(fc.tuple(length, fc.boolean()), { minLength: 1, maxLength: 6 });

test("exactly the ends of frames are found, wherever a stream is split", () => {
  fc.assert(
    fc.property(frames, fc.array(fc.nat(400_000), { maxLength: 20 }), (list, cuts) => {
      const whole = list.map(([bytes, masked]) => frame(bytes, masked));
      const stream = Buffer.concat(whole);
      let end = 0;
      const ends = new Set([0, ...whole.map((one) => (end += one.length))]);
      const places = [...cuts.map((cut) => cut % stream.length), ...ends, stream.length - 1];
      const boundary = new FrameBoundary();
      let at = 0;
      for (const place of [...new Set(places)].toSorted((a, b) => a - b)) {
        boundary.advance(stream.subarray(at, place));
        at = place;
        expect(boundary.atBoundary).toBe(ends.has(place));
      }
    }),
    { numRuns: 200 },
  );
});

test("of the data that follows, only the rest of the current frame is taken", () => {
  fc.assert(
    fc.property(frames, fc.nat(400_000), fc.nat(70_000), (list, begun, step) => {
      const whole = list.map(([bytes, masked]) => frame(bytes, masked));
      const stream = Buffer.concat(whole);
      const place = begun % stream.length;
      let end = 0;
      for (const one of whole) if (end < place) end += one.length;
      const boundary = new FrameBoundary();
      boundary.advance(stream.subarray(0, place));
      let at = place;
      while (!boundary.atBoundary) at += boundary.finish(stream.subarray(at, at + step + 1));
      expect(at).toBe(end);
      expect(boundary.finish(stream.subarray(at))).toBe(0);
    }),
    { numRuns: 200 },
  );
});

test("byte by byte, the result is the same", () => {
  const whole = [frame(0, true), frame(126, false), frame(3, true)];
  const ends: number[] = [];
  const boundary = new FrameBoundary();
  for (const [index, byte] of Buffer.concat(whole).entries()) {
    boundary.advance(Uint8Array.of(byte));
    if (boundary.atBoundary) ends.push(index + 1);
  }
  expect(ends).toEqual([6, 6 + 130, 6 + 130 + 9]);
});

describe("Sallyport's close frame", () => {
  test.each([
    [1001, [0x88, 2, 0x03, 0xe9]],
    [1000, [0x88, 2, 0x03, 0xe8]],
  ])("carries %i, is final and unmasked", (code, bytes) => {
    expect([...closeFrame(code)]).toEqual(bytes);
  });

  test("contains a reason", () => {
    expect(closeFrame(1008, "why").toString("latin1")).toBe("\x88\x05\x03\xf0why");
  });

  test("is masked if a client sends it, each time with another key", () => {
    const frames = [maskedCloseFrame(1008, "why"), maskedCloseFrame(1008, "why")];
    for (const frame of frames) {
      const [key, masked] = [frame.subarray(2, 6), frame.subarray(6)];
      expect([...frame.subarray(0, 2)]).toEqual([0x88, 0x85]);
      const payload = masked.map((byte, index) => byte ^ (key[index % 4] ?? 0));
      expect(Buffer.from(payload).toString("latin1")).toBe("\x03\xf0why");
    }
    expect(frames[0]).not.toEqual(frames[1]);
  });

  test.each([
    { bytes: closeFrame(1001) },
    { bytes: closeFrame(1008, "why") },
    { bytes: maskedCloseFrame(1008, "why") },
  ])("is one frame", ({ bytes }) => {
    const boundary = new FrameBoundary();
    boundary.advance(bytes.subarray(0, -1));
    expect(boundary.finish(bytes.subarray(-1))).toBe(1);
    expect(boundary.atBoundary).toBe(true);
  });
});
