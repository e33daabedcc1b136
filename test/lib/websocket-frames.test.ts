import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { closeFrame, FrameBoundary } from "../../src/lib/websocket-frames.ts";

/** A frame by RFC 6455 §5.2, with its length in the shortest form. */
function frame(payloadBytes: number, masked: boolean): Buffer {
  const mark = masked ? 0x80 : 0;
  const head =
    payloadBytes < 126
      ? Buffer.from([0x82, mark | payloadBytes])
      : payloadBytes < 65_536
        ? Buffer.from([0x82, mark | 126, payloadBytes >> 8, payloadBytes & 0xff])
        : Buffer.concat([Buffer.from([0x82, mark | 127]), bigEndian(payloadBytes)]);
  // Bytes that would read as headers, were they taken for some.
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

test("however a stream is cut, the ends of its frames are found, and nothing else", () => {
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
        expect(boundary.between).toBe(ends.has(place));
      }
    }),
    { numRuns: 200 },
  );
});

test("byte by byte it is the same", () => {
  const whole = [frame(0, true), frame(126, false), frame(3, true)];
  const ends: number[] = [];
  const boundary = new FrameBoundary();
  for (const [index, byte] of Buffer.concat(whole).entries()) {
    boundary.advance(Uint8Array.of(byte));
    if (boundary.between) ends.push(index + 1);
  }
  expect(ends).toEqual([6, 6 + 130, 6 + 130 + 9]);
});

describe("our close frame", () => {
  test.each([
    [1001, [0x88, 2, 0x03, 0xe9]],
    [1000, [0x88, 2, 0x03, 0xe8]],
  ])("carries %i, is final and unmasked", (code, bytes) => {
    expect([...closeFrame(code)]).toEqual(bytes);
  });

  test("is one frame", () => {
    const boundary = new FrameBoundary();
    boundary.advance(closeFrame(1001));
    expect(boundary.between).toBe(true);
  });
});
