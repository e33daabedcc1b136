import fc from "fast-check";
import {
  END_HEADERS,
  END_STREAM,
  type Field,
  FRAME,
  frame,
  headerBlock,
  PADDED,
} from "../../tools/selftest/http2/http2-frames.ts";
import type { StreamRequest } from "../../tools/selftest/http2/http2-requests.ts";

/** How a request is cut into frames. */
interface Cutting {
  /** Where the header section is cut, in parts of 10,000; empty if it is not cut. */
  readonly section: readonly number[];
  /** Bytes of padding; 0 for none. */
  readonly padding: number;
}

export const cutting: fc.Arbitrary<Cutting> = fc.record({
  section: fc.oneof(
    { arbitrary: fc.constant([]), weight: 3 },
    fc.array(fc.nat(9_999), { minLength: 1, maxLength: 3 }),
  ),
  padding: fc.oneof({ arbitrary: fc.constant(0), weight: 3 }, fc.constantFrom(1, 7, 255)),
});

/** Returns the frames of a request in Latin-1, in pieces that must not be interrupted. */
export function pieces(
  stream: number,
  { fields, body = [], trailers }: StreamRequest,
  cut: Cutting,
): string[] {
  const bare = body.length === 0 && trailers === undefined;
  const head = section(stream, fields, bare ? END_STREAM : 0, cut);
  const data = body.map((part, i) => {
    const last = i === body.length - 1 && trailers === undefined;
    return padded(FRAME.data, last ? END_STREAM : 0, stream, Buffer.from(part, "latin1"), cut);
  });
  const end = trailers === undefined ? [] : [section(stream, trailers, END_STREAM, cut)];
  return [head, ...data, ...end].map((bytes) => bytes.toString("latin1"));
}

/** Returns a header section as HEADERS and CONTINUATION frames. */
function section(stream: number, fields: readonly Field[], flags: number, cut: Cutting): Buffer {
  const block = headerBlock(fields);
  const offsets = cut.section.map((at) => Math.floor((at * block.length) / 10_000));
  const ends = [...offsets.toSorted((a, b) => a - b), block.length];
  const parts = ends.map((end, i) => block.subarray(ends[i - 1] ?? 0, end));
  const last = parts.length - 1;
  return Buffer.concat(
    parts.map((part, i) =>
      i === 0
        ? padded(FRAME.headers, flags | (last === 0 ? END_HEADERS : 0), stream, part, cut)
        : frame(FRAME.continuation, i === last ? END_HEADERS : 0, stream, part),
    ),
  );
}

function padded(
  type: number,
  flags: number,
  stream: number,
  payload: Buffer,
  { padding }: Cutting,
): Buffer {
  if (padding === 0) return frame(type, flags, stream, payload);
  const whole = Buffer.concat([Buffer.from([padding]), payload, Buffer.alloc(padding)]);
  return frame(type, flags | PADDED, stream, whole);
}

/** Interleaves the pieces of several streams. The pieces of each stream stay in order, and streams begin in order. */
export function interleaved(
  streams: readonly (readonly string[])[],
  picks: readonly number[],
): string[] {
  const left = streams.map((each) => [...each]);
  const all: string[] = [];
  for (let turn = 0, begun = 0; left.some((each) => each.length > 0); turn += 1) {
    const open = left.slice(0, begun).filter((each) => each.length > 0);
    const next = left.slice(begun, begun + 1);
    const choice = [...open, ...next];
    const picked = choice[(picks[turn % picks.length] ?? 0) % choice.length];
    if (picked === next[0]) begun += 1;
    all.push(...(picked?.splice(0, 1) ?? []));
  }
  return all;
}
