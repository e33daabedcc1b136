import fc from "fast-check";
import type { Credentials } from "../subject/subject.ts";

/** Methods, most often common ones with and without a body. */
export const method = fc.oneof(
  { arbitrary: fc.constantFrom("GET", "POST", "DELETE"), weight: 4 },
  { arbitrary: fc.constantFrom("HEAD", "PUT", "PATCH", "OPTIONS"), weight: 2 },
  fc.constantFrom("TRACE", "CONNECT", "PROPFIND", "QUERY", "PRI", "get", "G ET", ""),
);

/** Well-formed paths, public and protected. */
export const plainPath = fc.constantFrom("/public/a", "/public/b/c", "/admin", "/orders/1", "/");

export function bearer({ valid, refused }: Credentials): fc.Arbitrary<string> {
  return fc.oneof(
    { arbitrary: fc.constant(`Authorization: Bearer ${valid}`), weight: 3 },
    fc.constantFrom(...refused).map((token) => `Authorization: Bearer ${token}`),
  );
}

/** Generates the fields of almost every request: a host, and often a token. */
export function usualFields(credentials: Credentials): fc.Arbitrary<string[]> {
  return fc
    .tuple(fc.constantFrom("Host: localhost", "Host: a.test:8443"), fc.option(bearer(credentials)))
    .map(([host, token]) => (token === null ? [host] : [host, token]));
}

/** A request that must not be taken for a separate one. */
export const SMUGGLED = "GET /admin?smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";

/** A body with its framing field. `sizes` are those of the chunks of a chunked body. */
export const framedBody = fc
  .record({
    body: fc.oneof(
      fc.constantFrom("", "x", "hello", SMUGGLED, `0\r\n\r\n${SMUGGLED}`, `\r\n\r\n${SMUGGLED}`),
      fc.string({
        unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
      }),
    ),
    framing: fc.constantFrom("length", "chunked", "none"),
    sizes: fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 4 }),
    extension: fc.constantFrom("", "", "", ";a=b", ';a="b"', ";"),
    trailers: fc.array(
      fc.constantFrom("X-Sum: 1", "X-Auth-Subject: forged", "Content-Length: 5", "Host: forged"),
      { maxLength: 2 },
    ),
  })
  .map(({ body, framing, sizes, extension, trailers }) => {
    if (framing === "none") return { field: [], bytes: "" };
    if (framing === "length") return { field: [`Content-Length: ${body.length}`], bytes: body };
    const bytes = chunked(body, sizes, extension, trailers);
    return { field: ["Transfer-Encoding: chunked"], bytes };
  });

export function chunked(
  body: string,
  sizes: readonly number[],
  extension = "",
  trailers: readonly string[] = [],
): string {
  let text = "";
  let at = 0;
  for (const size of [...sizes, body.length]) {
    const chunk = body.slice(at, at + size);
    if (chunk !== "") text += `${chunk.length.toString(16)}${extension}\r\n${chunk}\r\n`;
    at += size;
  }
  return `${text}0${extension}\r\n${trailers.map((line) => `${line}\r\n`).join("")}\r\n`;
}
