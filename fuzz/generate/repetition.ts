import fc from "fast-check";
import type { Credentials } from "../subject/subject.ts";
import type { Case } from "../wire/converse.ts";
import { type Draft, messages } from "./message.ts";
import { chunked, usualFields } from "./pieces.ts";
import { count, manyFields, run } from "./repeated.ts";

/** Request fields that some hop interprets, and one that none does. */
const NAMES = [
  ...[
    "Connection",
    "Connection",
    "Connection",
    "Keep-Alive",
    "TE",
    "Trailer",
    "Upgrade",
    "Expect",
    "Via",
  ],
  ...["X-Forwarded-For", "Forwarded", "X-Real-IP", "X-Request-Id", "Authorization", "Cookie"],
  ...["traceparent", "tracestate", "Accept", "Content-Type", "Link", "Range", "Host", "X-A"],
];
/** The limits of a head, within those of the subject. */
const MOST_BYTES = 14_000;
const MOST_FIELDS = 240;

const WEBSOCKET = [
  ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

const target = fc.oneof(
  { arbitrary: fc.constantFrom("/public/a", "/orders/1"), weight: 6 },
  run(MOST_BYTES).map((text) => `/public/${text.replaceAll(/[^!-~]/g, "a")}`),
  run(MOST_BYTES).map((text) => `/public/a?${text.replaceAll(/[^!-~]/g, "a")}`),
);

const repeated = fc.oneof(
  { arbitrary: manyFields(NAMES, MOST_FIELDS, MOST_BYTES), weight: 3 },
  fc
    .tuple(fc.constantFrom(...NAMES), run(MOST_BYTES))
    .map(([name, value]) => [`${name}: ${value}`]),
);

/** Deep or wide JSON. */
const json = fc
  .tuple(
    fc.constantFrom("[", '{"a":', '"a",', "[[],", '"\\\\', '"\\u0061', "1e", "-"),
    count(8_000),
  )
  .map(([unit, times]) => unit.repeat(Math.min(times, Math.floor(8_000 / unit.length))));

const login = json.map((body): Draft => ({
  line: "POST /api/authenticate HTTP/1.1",
  fields: ["Host: localhost", "Content-Type: application/json", `Content-Length: ${body.length}`],
  body,
}));

/** Generates single requests with much repetition or nesting, which could take more time than their length justifies. */
export function repetition(credentials: Credentials): fc.Arbitrary<Case> {
  const request = fc
    .record({
      method: fc.constantFrom("GET", "GET", "POST", "HEAD"),
      target,
      usual: usualFields(credentials),
      repeated,
      switches: fc.nat(5).map((turn) => turn === 5),
      trailers: fc.option(manyFields(["X-Sum", "X-Auth", "Content"], 100, 4_000), { freq: 6 }),
    })
    .map(({ method, target, usual, repeated, switches, trailers }): Draft => {
      const line = `${switches ? "GET" : method} ${target} HTTP/1.1`;
      const fields = [...usual, ...repeated, ...(switches ? WEBSOCKET : [])];
      if (trailers === null || switches) return { line, fields, body: "" };
      const body = chunked("hello", [2], "", trailers);
      return { line, fields: [...fields, "Transfer-Encoding: chunked"], body };
    });
  const draft = fc.oneof({ arbitrary: request, weight: 8 }, login);
  return messages(draft, fc.constantFrom("Connection: close", "X: y")).map((text) => ({
    rounds: [[text]],
    patient: false,
  }));
}
