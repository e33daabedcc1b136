import fc from "fast-check";
import { FRAME, frame } from "../../tools/selftest/http2/http2-frames.ts";
import type { Credentials } from "../subject/subject.ts";
import type { Case } from "../wire/converse.ts";
import { framedCase, streamPieces } from "./http2.ts";
import { type ListChange, place, withOneTwice, withoutOne } from "./list-changes.ts";
import { SMUGGLED } from "./pieces.ts";

/** Numbers of four bytes: zero, small ones, and ones that are out of bounds. */
const NUMBERS = [
  ...["\0\0\0\0", "\0\0\0\u0001", "\0\0\u0040\0", "\u007f\u00ff\u00ff\u00ff"],
  ...["\u0080\0\0\u0001", "\u00ff\u00ff\u00ff\u00ff"],
];
const SETTINGS = fc
  .array(fc.tuple(fc.constantFrom(0, 1, 2, 3, 4, 5, 6, 8, 9, 255), fc.constantFrom(...NUMBERS)), {
    maxLength: 4,
  })
  .map((all) => all.map(([id, number]) => `\0${String.fromCharCode(id)}${number}`).join(""));
const PAYLOADS = fc.oneof(
  fc.constantFrom("", "a", "abcd", "abcde", "abcdefgh", SMUGGLED, `\u00ff${SMUGGLED}`),
  fc.constantFrom(...NUMBERS),
  fc.tuple(fc.constantFrom(...NUMBERS), fc.constantFrom(...NUMBERS)).map((pair) => pair.join("")),
  SETTINGS,
  fc.constantFrom(16_384, 16_385, 70_000).map((length) => "z".repeat(length)),
);
const TYPES = fc.oneof(
  { arbitrary: fc.constantFrom(...Object.values(FRAME)), weight: 4 },
  fc.constantFrom(5, 10, 12, 16, 0x21, 0xbe, 0xff),
);

/** Frames that change nothing for the streams of requests. */
const harmless = fc
  .tuple(
    fc.constantFrom(
      frame(FRAME.ping, 0, 0, "abcdefgh"),
      frame(FRAME.priority, 0, 1, "\0\0\0\0a"),
      frame(FRAME.priority, 0, 99, "\0\0\0\u0063a"),
      frame(FRAME.windowUpdate, 0, 0, "\0\0\0\u0001"),
      frame(FRAME.settings, 0, 0),
      frame(0xbe, 0xff, 1, "abc"),
    ),
    fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 60 })),
  )
  .map(([one, times]) => one.toString("latin1").repeat(times));

/** Arbitrary frames, once or many times. */
const anything: fc.Arbitrary<string> = fc
  .record({
    type: TYPES,
    flags: fc.oneof(fc.constantFrom(0, 1, 4, 5, 8, 0x20), fc.nat(255)),
    stream: fc.oneof(fc.constantFrom(0, 1, 3, 5), fc.constantFrom(2, 7, 2 ** 31 - 1, 2 ** 31)),
    payload: PAYLOADS,
    times: fc.oneof({ arbitrary: fc.constant(1), weight: 9 }, fc.integer({ min: 2, max: 150 })),
  })
  .map(({ type, flags, stream, payload, times }) => {
    const one = frame(type, flags, stream, payload).toString("latin1");
    return one.repeat(Math.max(1, Math.min(times, Math.floor(100_000 / one.length))));
  });

type Change = ListChange<string>;

/** Changes that remove, double, move or cut a piece, or change its length, type, flags or stream. */
const change: fc.Arbitrary<Change> = fc.oneof(
  withoutOne<string>(),
  withOneTwice<string>(),
  fc.tuple(place, place).map(([from, to]): Change => (all) => {
    const index = from % all.length;
    return all.toSpliced(index, 1).toSpliced(to % all.length, 0, all[index] ?? "");
  }),
  fc.tuple(place, fc.nat(40)).map(
    ([at, length]): Change =>
      (all) =>
        all.map((each, i) => (i === at % all.length ? each.slice(0, length) : each)),
  ),
  fc.tuple(place, fc.constantFrom(2, 3, 4, 8), fc.nat(12)).map(
    ([at, octet, value]): Change =>
      (all) =>
        all.map((each, i) =>
          i === at % all.length
            ? each.slice(0, octet) + String.fromCharCode(value) + each.slice(octet + 1)
            : each,
        ),
  ),
);

/** Generates unexpected frames among those of requests, which may be well-formed. */
export function frames(credentials: Credentials): fc.Arbitrary<Case> {
  const some = <T>(all: fc.Arbitrary<T>): fc.Arbitrary<T[]> =>
    fc.oneof(fc.constant<T[]>([]), fc.array(all, { minLength: 1, maxLength: 2 }));
  const strays = fc
    .tuple(some(fc.tuple(place, harmless)), some(fc.tuple(place, anything)))
    .map((both) => both.flat());
  const mixed = fc
    .tuple(streamPieces(credentials), strays, some(change))
    .map(([pieces, strays, changes]) => {
      let all: readonly string[] = pieces;
      for (const alter of changes) if (all.length > 0) all = alter(all);
      for (const [at, one] of strays) all = all.toSpliced(at % (all.length + 1), 0, one);
      return all.length === 0 ? [frame(FRAME.ping, 0, 0, "abcdefgh").toString("latin1")] : [...all];
    });
  return framedCase(mixed);
}
