import fc from "fast-check";
import type { Credentials } from "../subject/subject.ts";
import { casesOf } from "./cases.ts";
import { type Draft, messages } from "./message.ts";
import { framedBody, method, plainPath, SMUGGLED, usualFields } from "./pieces.ts";

/** Fields with which two parsers may disagree about the end of the body. */
const FIELDS = [
  ...["Content-Length: 0", "Content-Length: 5", "Content-Length: 05", "Content-Length: +5"],
  ...["Content-Length: -1", "Content-Length: 5, 5", "Content-Length: 0x5", "Content-Length:"],
  ...["Content-Length: 5;a", "Content-Length : 5", "Content-Length\t: 5", "Content_Length: 5"],
  ...["Content-Length: 99999999999999999999", "Content-Length: 5\u000b", "content-length: 1e1"],
  ...["Transfer-Encoding: chunked", "transfer-encoding: CHUNKED", "Transfer-Encoding: identity"],
  ...["Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked, chunked"],
  ...["Transfer-Encoding: chunked, identity", "Transfer-Encoding: xchunked"],
  ...["Transfer-Encoding:\u000bchunked", "Transfer-Encoding: chunked;q=1", "Transfer-Encoding:"],
  ...["Transfer-Encoding : chunked", "Transfer_Encoding: chunked", 'Transfer-Encoding: "chunked"'],
  ...["X: y\r\n Transfer-Encoding: chunked", "X: y\nTransfer-Encoding: chunked"],
  ...["X: y\rContent-Length: 5", "X\0: y", "X: \0", ": y", "X", "X y: z", "\u00e9: y"],
  ...["Connection: close", "Connection: keep-alive", "Connection: content-length"],
  ...["Connection: keep-alive, transfer-encoding, host", "Keep-Alive: timeout=1"],
  ...["Expect: 100-continue", "Expect: 200-ok", "TE: trailers, chunked", "Trailer: X-Sum"],
  ...["Host: another", "Host:", "Upgrade: h2c", "X-HTTP-Method-Override: DELETE"],
];

const version = fc.oneof(
  { arbitrary: fc.constant("HTTP/1.1"), weight: 12 },
  fc.constantFrom(
    "HTTP/1.0",
    "HTTP/1.2",
    "HTTP/2.0",
    "HTTP/0.9",
    "http/1.1",
    "HTTP/1.1 ",
    "HTTP/11",
  ),
);

const flood = fc
  .tuple(fc.integer({ min: 100, max: 300 }), fc.constantFrom("Content-Length: 5", "X: y"))
  .map(([count, last]) =>
    [...Array.from({ length: count }, (_, i) => `A${i}: `), last].join("\r\n"),
  );

const long = fc
  .tuple(fc.constantFrom("X-Long: ", "Cookie: ", "X"), fc.integer({ min: 1_000, max: 20_000 }))
  .map(([start, length]) => start + "a".repeat(length));

/** Generates requests about whose end parsers may disagree. */
export function framing(credentials: Credentials) {
  const draft = fc
    .record({
      method,
      path: plainPath,
      version,
      fields: usualFields(credentials),
      body: framedBody,
    })
    .map(({ method, path, version, fields, body }): Draft => ({
      line: `${method} ${path} ${version}`,
      fields: [...fields, ...body.field],
      body: body.bytes,
    }));
  const field = fc.oneof(
    { arbitrary: fc.constantFrom(...FIELDS), weight: 30 },
    { arbitrary: fc.constant(`X: y\r\n\r\n${SMUGGLED}`), weight: 2 },
    flood,
    long,
  );
  return casesOf(messages(draft, field));
}
