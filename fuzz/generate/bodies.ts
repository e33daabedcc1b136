import fc from "fast-check";
import { BODY_BYTES } from "../subject/sallyport.ts";
import type { Credentials } from "../subject/subject.ts";
import { casesOf } from "./cases.ts";
import { type Draft, messages } from "./message.ts";
import { chunked, plainPath, SMUGGLED, usualFields } from "./pieces.ts";

const size = fc.oneof(
  { arbitrary: fc.integer({ min: 0, max: 300 }), weight: 10 },
  { arbitrary: fc.integer({ min: 0, max: BODY_BYTES }), weight: 2 },
  fc.constantFrom(BODY_BYTES - 1, BODY_BYTES, BODY_BYTES + 1, 2 * BODY_BYTES),
);

const LOGINS = [
  ...['{"username":"alice","password":1}', '{"username":"alice"}', "{}", "[]", "null", '"', "{"],
  ...['{"username":"a","username":"b","password":"c"}', '{"__proto__":{"username":"a"}}', "\u00ff"],
  ...['{"username":"","password":""}', '{"username":["a"],"password":{}}', "\0", "[[[[[[[[[["],
  ...['{"username":"nobody","password":"x"}', '{"username":"\\ud800","password":"\\u0000"}'],
];
const TYPES = [
  ...["application/json", "application/json", "application/json; charset=utf-8", "text/plain", ""],
  ...["application/json; charset=utf-16", "application/json, text/plain", "APPLICATION/JSON"],
];

const login = fc
  .tuple(
    fc.constantFrom(...LOGINS),
    fc.constantFrom(...TYPES),
    fc.constantFrom("POST", "PUT", "GET"),
  )
  .map(([body, type, method]): Draft => ({
    line: `${method} /api/authenticate HTTP/1.1`,
    fields: ["Host: localhost", `Content-Type: ${type}`, `Content-Length: ${body.length}`],
    body,
  }));

/** Generates bodies of all sizes with all framings, and login bodies. */
export function bodies(credentials: Credentials) {
  const upload = fc
    .record({
      method: fc.constantFrom("POST", "PUT", "PATCH", "DELETE", "GET", "OPTIONS", "HEAD"),
      path: plainPath,
      usual: usualFields(credentials),
      size,
      filling: fc.constantFrom("x", SMUGGLED, "\r\n", "0\r\n\r\n", "\0\u00ff"),
      chunks: fc.option(fc.array(fc.integer({ min: 1, max: 20_000 }), { maxLength: 5 })),
      expects: fc.nat(7).map((turn) => turn === 7),
    })
    .map(({ method, path, usual, size, filling, chunks, expects }): Draft => {
      const body = filling.repeat(Math.ceil(size / filling.length)).slice(0, size);
      const framing = chunks === null ? `Content-Length: ${size}` : "Transfer-Encoding: chunked";
      return {
        line: `${method} ${path} HTTP/1.1`,
        fields: [...usual, framing, ...(expects ? ["Expect: 100-continue"] : [])],
        body: chunks === null ? body : chunked(body, chunks),
      };
    });
  const field = fc.constantFrom(
    ...["Expect: 100-continue", "Content-Encoding: gzip", "Content-Type: text/html"],
    ...["Content-MD5: x", "Range: bytes=0-1", "Connection: close", "Content-Range: bytes 0-1/2"],
  );
  const draft = fc.oneof({ arbitrary: upload, weight: 5 }, login);
  return casesOf(messages(draft, field));
}
