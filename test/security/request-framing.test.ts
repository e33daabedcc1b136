/**
 * Two readings of one message. If a proxy and its backend disagree about the end of a body, one of them takes the
 * rest of the body for a separate request (RFC 9112 §11.2). Node's parser accepts `Transfer-Encoding: gzip, chunked`
 * and any transfer coding in HTTP/1.0; a backend may see no body at all. Messages that are not framed unambiguously
 * are refused, and the connection ends, since the beginning of the next request is unknown.
 */
import { describe, expect, it } from "vitest";
import { expectRefusal } from "../support/envelope.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { chunked, exchange, request } from "../support/raw-client.ts";

const SMUGGLED = request(["GET /admin HTTP/1.1", "Host: backend"]);
/** A loop is refused too, but on a connection that stays open. */
const LOOP = `CDN-Loop: ${Array.from({ length: 11 }, (_, i) => `sallyport-${i}`).join(", ")}`;
const post = (headers: readonly string[], body: string, version = "1.1"): string =>
  request([`POST /public/x HTTP/${version}`, "Host: localhost", ...headers], body);

const CASES: readonly { name: string; bytes: string; naive?: number }[] = [
  {
    name: "a coding before chunked",
    bytes: post(["Transfer-Encoding: gzip, chunked"], chunked(SMUGGLED)),
    naive: 200,
  },
  {
    name: "two fields that amount to a coding before chunked",
    bytes: post(["Transfer-Encoding: identity", "Transfer-Encoding: chunked"], chunked(SMUGGLED)),
    naive: 200,
  },
  {
    name: "Transfer-Encoding in HTTP/1.0",
    bytes: post(["Transfer-Encoding: chunked"], chunked(SMUGGLED), "1.0"),
    naive: 200,
  },
  {
    name: "a coding before chunked, in a request that seems to loop",
    bytes: post(["Transfer-Encoding: gzip, chunked", LOOP], chunked(SMUGGLED)),
    naive: 200,
  },
  {
    name: "Transfer-Encoding in HTTP/1.0, in a request that seems to loop",
    bytes: post(
      ["Connection: keep-alive", "Transfer-Encoding: chunked", LOOP],
      chunked(SMUGGLED),
      "1.0",
    ),
    naive: 200,
  },
  {
    name: "chunked twice",
    bytes: post(["Transfer-Encoding: chunked, chunked"], chunked(SMUGGLED)),
  },
  {
    name: "a coding after chunked",
    bytes: post(["Transfer-Encoding: chunked, gzip"], chunked(SMUGGLED)),
  },
  { name: "an unknown coding", bytes: post(["Transfer-Encoding: xchunked"], chunked(SMUGGLED)) },
  {
    name: "a coding with a vertical tab",
    bytes: post(["Transfer-Encoding: \x0bchunked"], chunked(SMUGGLED)),
  },
  {
    name: "a length in addition to chunked",
    bytes: post(["Content-Length: 4", "Transfer-Encoding: chunked"], chunked(SMUGGLED)),
  },
  {
    name: "two lengths",
    bytes: post(["Content-Length: 0", `Content-Length: ${SMUGGLED.length}`], SMUGGLED),
  },
  { name: "a list of lengths", bytes: post(["Content-Length: 4, 4"], "abcd") },
  { name: "a length with a sign", bytes: post(["Content-Length: +4"], "abcd") },
  { name: "a length in hexadecimal", bytes: post(["Content-Length: 0x4"], "abcd") },
  { name: "an empty length", bytes: post(["Content-Length:"], SMUGGLED) },
  { name: "a space before the colon", bytes: post(["Content-Length : 4"], "abcd") },
  { name: "a folded header", bytes: post(["X-A: b", " Content-Length: 4"], "abcd") },
  { name: "a bare line feed", bytes: post(["X-A: b\nContent-Length: 4"], "abcd") },
  { name: "a bare carriage return", bytes: post(["X-A: b\rContent-Length: 4"], "abcd") },
];

const BROKEN_BODIES = [
  { name: "a chunk size with a sign", body: `+4\r\nabcd\r\n0\r\n\r\n` },
  { name: "a chunk size with 0x", body: `0x4\r\nabcd\r\n0\r\n\r\n` },
  { name: "a chunk longer than announced", body: `2\r\nabcd\r\n0\r\n\r\n` },
  { name: "a chunk size over 64 bits", body: `fffffffffffffffff\r\nabcd\r\n0\r\n\r\n` },
  { name: "a chunk line that ends in a line feed", body: `4\nabcd\r\n0\r\n\r\n` },
];

describe("Sallyport", () => {
  const standing = useSallyport(undefined, { withoutToken: true });

  it.each(CASES)("refuses $name", async ({ bytes }) => {
    const { gate, backend } = standing();
    const answer = await exchange(gate, bytes, { responses: Infinity });
    expectRefusal(answer, 400);
    expect(backend.seen()).toEqual([]);
  });

  it.each(BROKEN_BODIES)("ends the connection at $name", async ({ body }) => {
    const { gate, backend } = standing();
    const bytes = post(["Transfer-Encoding: chunked"], body);
    const answer = await exchange(gate, bytes, { responses: Infinity });
    expect(answer.ended).toBe("closed");
    expect(answer.responses.length).toBeLessThanOrEqual(1);
    expect(answer.last.status === 0 || answer.last.status === 400).toBe(true);
    expect(backend.requests()).toEqual([]);
  });

  it("finds the Content-Length after a thousand other fields (CVE-2026-58044)", async () => {
    const { gate, backend } = standing();
    const many = Array.from({ length: 1100 }, (_, index) => `a${index}: `);
    await exchange(gate, post([...many, `Content-Length: ${SMUGGLED.length}`], SMUGGLED));
    await exchange(gate, request(["GET /public/after HTTP/1.1", "Host: localhost"]));
    expect(backend.seen().filter((line) => line.includes("/admin"))).toEqual([]);
    expect(backend.seen().at(-1)).toBe("GET /public/after");
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy();

  it.each(CASES.filter((row) => row.naive !== undefined))(
    "forwards $name",
    async ({ bytes, naive }) => {
      const { gate } = standing();
      expect((await exchange(gate, bytes)).last.status).toBe(naive);
    },
  );
});
