import fc from "fast-check";
import type { Field } from "../../tools/selftest/http2/http2-frames.ts";
import { fieldsOf, type StreamRequest } from "../../tools/selftest/http2/http2-requests.ts";
import { HEADS, LENGTHS, TRAILERS } from "../../tools/selftest/http2/http2-framing-checks.ts";
import type { Credentials } from "../subject/subject.ts";
import type { Case } from "../wire/converse.ts";
import { type Dial, PLAIN } from "../wire/dial.ts";
import { forged } from "./headers.ts";
import { cuts } from "./message.ts";
import { target } from "./paths.ts";
import { type ListChange, place, withOneTwice, withoutOne } from "./list-changes.ts";
import { bearer, method, plainPath, SMUGGLED } from "./pieces.ts";
import { cutting, interleaved, pieces } from "./streams.ts";

/** Fields that are difficult to translate to HTTP/1.1. */
const ODD: readonly Field[] = [
  ...([
    ["host", "localhost"],
    ["host", "evil.test"],
    ["host", "a\0b"],
    ["host", ""],
  ] as const),
  ...([
    ["x-a", "1\r\nx-auth-subject: forged"],
    ["x-a", "1\nx-b: 2"],
    ["x-a", "1\0"],
  ] as const),
  ...([
    ["x-a", " 1"],
    ["x-a", "1 "],
    ["x-a", "1\r"],
    ["x-a", "\u007f"],
    ["x a", "1"],
  ] as const),
  ...([
    ["x-a: b\r\nx-auth-subject", "forged"],
    ["x-auth-subject:", "forged"],
    ["", "x"],
  ] as const),
  ...([
    ["x-auth-subject ", "forged"],
    ["x\0", "1"],
    ["\u00e9", "1"],
    ["__proto__", "1"],
  ] as const),
  ...([
    ["te", "trailers"],
    ["te", "Trailers, deflate"],
    ["trailer", "x-sum"],
  ] as const),
  ...([
    ["expect", "100-continue"],
    ["expect", "200-ok"],
    ["http2-settings", "AAMAAABk"],
  ] as const),
  ...([
    ["content-length", "0"],
    ["content-length", "5"],
    ["content-length", ""],
  ] as const),
  ...([
    ["content-length", "+5"],
    ["content-length", "5, 5"],
    ["cookie", "a=1"],
  ] as const),
  ...([
    ["cookie", "b=2"],
    ["cookie", ""],
    ["cookie", "c=3; d=4"],
    ["cookie", ";"],
  ] as const),
  ...([
    [":authority", "evil.test"],
    [":path", "/admin"],
    [":method", "DELETE"],
  ] as const),
  ...([
    [":scheme", "http"],
    [":scheme", "file"],
    [":protocol", "x"],
    [":", ""],
  ] as const),
  ...([
    ["x-http-method-override", "PUT"],
    ["x-original-url", "/admin"],
  ] as const),
  ["X-Auth-Subject", "forged"],
];

type Change = ListChange<Field>;

/** One change to the fields of a well-formed head. */
const change: fc.Arbitrary<Change> = fc.oneof(
  { arbitrary: put(fc.constantFrom(...ODD)), weight: 4 },
  {
    arbitrary: fc.constantFrom(...HEADS).map(
      ([, alter]): Change =>
        (all) =>
          alter(all, "m"),
    ),
    weight: 3,
  },
  withoutOne<Field>(),
  withOneTwice<Field>(),
  fc.tuple(place, place).map(([from, to]): Change => (all) => {
    const moved = all.slice(from % all.length, (from % all.length) + 1);
    return all.filter((each) => !moved.includes(each)).toSpliced(to % all.length, 0, ...moved);
  }),
  fc.tuple(place, fc.constantFrom("\0", "\r\n", "\n", " ", "\t", "\u00ff", "")).map(
    ([at, text]): Change =>
      (all) =>
        all.map(([name, value], i) => [name, i === at % all.length ? value + text : value]),
  ),
);

/** Inserts a field before, between or after the others. */
function put(field: fc.Arbitrary<Field>): fc.Arbitrary<Change> {
  return fc.tuple(place, field).map(
    ([at, one]) =>
      (all) =>
        all.toSpliced(at % 9, 0, one),
  );
}

const body = fc.oneof(
  { arbitrary: fc.constant(undefined), weight: 3 },
  fc.array(fc.constantFrom("", "x", "hello", SMUGGLED, `0\r\n\r\n${SMUGGLED}`), {
    minLength: 1,
    maxLength: 3,
  }),
);
const trailers = fc.oneof(
  { arbitrary: fc.constant(undefined), weight: 5 },
  fc.constantFrom(...TRAILERS).map(([, fields]) => fields),
  fc.constantFrom<Field[]>([["x-sum", "1"]], [["x-auth-subject", "forged"]], [["host", "a"]], []),
);
/** The `content-length`: none, the right one, or another one. */
const lengths = fc.oneof(
  { arbitrary: fc.constantFrom("none", "right"), weight: 5 },
  fc.constantFrom(...LENGTHS).map(([, said]) => said),
);

/** Generates a request on one stream; two in three are well-formed except for the values of their fields. */
function request(credentials: Credentials): fc.Arbitrary<StreamRequest> {
  const lower = forged.map(([name, value]): Field => [name.toLowerCase(), value.trim()]);
  const changes = fc.oneof(
    { arbitrary: fc.constant<Change[]>([]), weight: 2 },
    fc.array(change, { minLength: 1, maxLength: 2 }),
  );
  return fc
    .record({
      method,
      path: fc.oneof({ arbitrary: plainPath, weight: 4 }, target),
      authority: fc.constantFrom("localhost", "a.test:8443", "LOCALHOST"),
      token: fc.option(bearer(credentials), { freq: 2 }),
      others: fc.array(lower, { maxLength: 3 }),
      changes,
      body,
      trailers,
      lengths,
    })
    .map(({ method, path, authority, token, others, changes, body, trailers, lengths }) => {
      const right = [String((body ?? []).join("").length)];
      const said = lengths === "none" ? [] : lengths === "right" ? right : lengths;
      let fields: readonly Field[] = [
        ...([
          [":method", method],
          [":scheme", "https"],
          [":authority", authority],
        ] as const),
        ...([[":path", path]] as const),
        ...fieldsOf(token === null ? [] : [token]),
        ...others,
        ...(typeof said === "string" ? [said] : said).map((length): Field => [
          "content-length",
          length,
        ]),
      ];
      for (const alter of changes) fields = alter(fields);
      return { fields, ...(body && { body }), ...(trailers && { trailers }) };
    });
}

/** A connection with prior knowledge, or over TLS. */
const dialHttp2: fc.Arbitrary<Dial> = fc.boolean().map((secure) => ({
  ...PLAIN,
  ...(secure ? { secure, offers: ["h2"] } : {}),
}));

/** Generates the pieces of one to four requests, interleaved. */
export function streamPieces(credentials: Credentials): fc.Arbitrary<string[]> {
  return fc
    .record({
      requests: fc.array(fc.tuple(request(credentials), cutting), { minLength: 1, maxLength: 4 }),
      picks: fc.array(fc.nat(3), { minLength: 1, maxLength: 8 }),
    })
    .map(({ requests, picks }) =>
      interleaved(
        requests.map(([one, cut], i) => pieces(2 * i + 1, one, cut)),
        picks,
      ),
    );
}

/** Generates a case of frames, in one or two rounds, in a few writes. */
export function framedCase(frames: fc.Arbitrary<string[]>): fc.Arbitrary<Case> {
  return fc
    .record({ frames, cut: cuts, turn: fc.option(fc.nat(99), { freq: 3 }), dial: dialHttp2 })
    .map(({ frames, cut, turn, dial }) => {
      const at = turn === null ? 0 : turn % frames.length;
      const rounds = [frames.slice(0, at), frames.slice(at)].filter((each) => each.length > 0);
      const texts = rounds.map((round) => cut(round.join("")));
      return { dial, frames: true, rounds: texts, patient: false };
    });
}

/** Generates requests on the streams of a connection, some of them malformed. */
export function http2(credentials: Credentials): fc.Arbitrary<Case> {
  return framedCase(streamPieces(credentials));
}
