import fc from "fast-check";
import type { Credentials } from "../subject/subject.ts";
import { casesOf } from "./cases.ts";
import { type Draft, messages } from "./message.ts";
import { bearer, chunked, plainPath, usualFields } from "./pieces.ts";

/** Names with which a client could deceive a backend. */
const NAMES = [
  ...["X-Auth-Subject", "X-Auth-Groups", "X-Auth-Issuer", "X-Forwarded-User"],
  ...[
    "X-Forwarded-Groups",
    "X-Auth-Client-Subject",
    "X-Original-URL",
    "X-Remote-User",
    "X-Remote-Groups",
    "X-Forwarded-For",
  ],
  ...["X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port", "X-Real-IP", "Forwarded"],
  ...["Authorization", "Proxy-Authorization", "X-Request-Id", "Host", "Cookie", "Expect"],
  ...["Connection", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Upgrade"],
  ...["HTTP2-Settings", "Accept", "X-Anything", "traceparent", "__proto__", "constructor"],
  ...["toString", "hasOwnProperty", "X-Auth", "Content-Type", "Via", "Max-Forwards", "CDN-Loop"],
];

/** A name in one of the spellings that some backend treats as the same. */
const name = fc
  .tuple(fc.constantFrom(...NAMES), fc.array(fc.nat(5), { maxLength: 30 }))
  .map(([plain, turns]) =>
    Array.from(plain, (letter, i) => {
      const turn = turns[i] ?? 0;
      if (letter === "-") return ["-", "-", "_", ".", "~", "-"][turn];
      return turn === 1 ? letter.toUpperCase() : turn === 2 ? letter.toLowerCase() : letter;
    }).join(""),
  );

const value = fc.oneof(
  {
    arbitrary: fc.constantFrom("forged", "127.0.0.1", "root", "alice", "close", "a, b"),
    weight: 4,
  },
  fc.constantFrom("", " ", "\u00e9", "\t", "a  b", '"', "for=1.1.1.1", "100-continue", "chunked"),
  fc.string({
    unit: fc.integer({ min: 0x21, max: 0xff }).map((code) => String.fromCharCode(code)),
  }),
);

/** A field with which a client tries to deceive. */
export const forged = fc.tuple(name, value);

const named = fc
  .array(name, { minLength: 1, maxLength: 3 })
  .map((names) => `Connection: ${["keep-alive", ...names].join(", ")}`);

/** Generates forged identities and origins, hop-by-hop fields, and names with a meaning in JavaScript. */
export function headers(credentials: Credentials) {
  const line = forged.map(([key, text]) => `${key}: ${text}`);
  const field = fc.oneof({ arbitrary: line, weight: 8 }, named, bearer(credentials));
  const trailers = fc.array(line, { maxLength: 3 });
  const draft = fc
    .record({
      method: fc.constantFrom("GET", "POST", "DELETE"),
      path: plainPath,
      usual: usualFields(credentials),
      others: fc.array(field, { maxLength: 5 }),
      trailers: fc.option(trailers),
    })
    .map(({ method, path, usual, others, trailers }): Draft => {
      const line = `${method} ${path} HTTP/1.1`;
      if (trailers === null) return { line, fields: [...usual, ...others], body: "" };
      const fields = [...usual, ...others, "Transfer-Encoding: chunked"];
      return { line, fields, body: chunked("hello", [2], "", trailers) };
    });
  return casesOf(messages(draft, field));
}
