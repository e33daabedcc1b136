import fc from "fast-check";
import type { Credentials } from "../subject/subject.ts";
import { casesOf } from "./cases.ts";
import { type Draft, messages } from "./message.ts";
import { usualFields } from "./pieces.ts";

const PIECES = [
  ...["/", "//", ".", "..", "/..", "/../", "/./", "\\", "/..\\", ";", ";a=b", "/..;/", "..%2f"],
  ...["%2e", "%2E", "%2e%2e", "%252e", "%25", "%2f", "%2F", "%5c", "%3b", "%3f", "%23", "%00"],
  ...["%0d%0a", "%09", "%20", "%7f", "%c0%ae", "%c0%af", "%e0%80%ae", "%ff", "%c3%a9", "%zz", "%2"],
  ...[
    "%",
    "%25%32%65",
    "%u002e",
    "\u00e9",
    "\u00c0\u00ae",
    "?",
    "?a=/../",
    "??",
    "#",
    "#/../admin",
  ],
  ...["*", "@", "%40", ":", ":80", "&", "=", "+", "~", "[", "]", "{", "|", "^", '"', "<", "`", "'"],
  ...["admin", "public", "PUBLIC", "%70ublic", "a", "api", "authenticate", "version", "v1", "\0"],
];

const piece = fc.oneof(
  {
    arbitrary: fc.constantFrom("/a", "/public", "/%41", "-b", "/..c", "%c3%a9", "?x=1"),
    weight: 8,
  },
  { arbitrary: fc.constantFrom(...PIECES), weight: 6 },
  fc.integer({ min: 0, max: 255 }).map((code) => `%${code.toString(16).padStart(2, "0")}`),
  fc.string({ maxLength: 2 }).map((text) => text.replaceAll(/[\s]/g, "")),
);

const START = [
  ...[
    "/public/",
    "/public/",
    "/public/",
    "/public",
    "/admin/",
    "/",
    "",
    "/api/",
    "/api/v1/version",
  ],
  ...[
    "http://localhost/",
    "http://localhost/public/",
    "HTTP://LOCALHOST/public/",
    "http://[",
    "//",
  ],
  ...["http://evil.test/public/", "https://localhost:443/public/", "http://localhost@evil.test/"],
  ...[
    "http:///public/",
    "http:/public/",
    "localhost:80",
    "*",
    "file:///public/",
    "http://localhost",
  ],
];

const start = fc.oneof(
  { arbitrary: fc.constantFrom("/public/", "/public/x", "/admin", "/public"), weight: 4 },
  fc.constantFrom(...START),
);

/** Targets of any form. */
export const target = fc
  .tuple(start, fc.array(piece, { maxLength: 6 }))
  .map(([start, pieces]) => start + pieces.join(""));

/** Generates paths that can be read in several ways, and targets of every form. */
export function paths(credentials: Credentials) {
  const draft = fc
    .record({
      method: fc.constantFrom("GET", "GET", "GET", "POST", "OPTIONS", "HEAD", "CONNECT"),
      target,
      fields: usualFields(credentials),
    })
    .map(({ method, target, fields }): Draft => ({
      line: `${method} ${target} HTTP/1.1`,
      fields,
      body: "",
    }));
  const field = fc.constantFrom(
    ...["X-Original-URL: /admin", "X-Rewrite-URL: /admin", "X-Forwarded-Prefix: /admin"],
    ...["Host: evil.test", "X-HTTP-Method-Override: PUT", "Referer: /public/"],
  );
  return casesOf(messages(draft, field));
}
