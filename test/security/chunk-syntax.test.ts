/**
 * Chunks that two parsers split differently. A chunk line is a size, extensions, and CRLF. A parser sees a different
 * body than its neighbour, and takes the rest for a request, if it accepts a bare line feed as the end (TERM.EXT, the
 * reverse EXT.TERM, and TERM.SPILL, SPILL.TERM after the bytes of a chunk: the research on chunked bodies of 2025),
 * skips what is between size and end, accepts `+5`, `0x5` or `5_0` as a number, or ignores two wrong bytes after the
 * chunk. Node had one variant after the other (CVE-2021-22960, CVE-2023-30589, CVE-2024-22019), and so had Go,
 * aiohttp, undertow and pound. Only the syntax of RFC 9112 §7.1 is a chunk. Everything else ends the connection, and
 * the backend executes nothing of it.
 */
import { describe, expect, it } from "vitest";
import { allOf, attackMarked } from "../support/marked-attack.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { openSocket, request } from "../support/raw-client.ts";
import { until } from "../support/until.ts";

const SIZE_LINES: readonly string[] = [
  ...["+5", "-5", "0x5", "5h", "5_", "5.0", "5,", "5 ", "5\t", " 5", "\t5", "5\x0b", "5\0", ""],
  ...["5 ;a", "5;", "5; a", "5;a\0", "5;\0a", "5;a\x7f", '5;a="b', '5;a="\0"', "5;\x0b"],
  ...["fffffffffffffffff", "10000000000000005", "100000000000000000000000005"],
];

/** Complete bodies; `<` stands for a request that a careless parser finds in them. */
const BODIES: readonly { readonly name: string; readonly body: string }[] = [
  ...SIZE_LINES.map((line) => ({ name: line, body: `${line}\r\nhello\r\n0\r\n\r\n` })),
  { name: "LF ends the size (TERM)", body: "5\nhello\r\n0\r\n\r\n" },
  { name: "CR ends the size", body: "5\rhello\r\n0\r\n\r\n" },
  { name: "LF ends the extension (TERM.EXT)", body: "2;\nxx\r\n2f\r\n0\r\n\r\n<" },
  { name: "LF within the extension (EXT.TERM)", body: "5;a\nb\r\nhello\r\n0\r\n\r\n" },
  { name: "CR within the extension", body: "5;a\rb\r\nhello\r\n0\r\n\r\n" },
  { name: "CR CR LF ends the size", body: "5\r\r\nhello\r\n0\r\n\r\n" },
  { name: "CRLF within a quoted extension", body: '5;a="\r\nhello\r\n0\r\n\r\n"\r\n0\r\n\r\n' },
  { name: "LF after the chunk (TERM.SPILL)", body: "5\r\nhello\n0\r\n\r\n" },
  { name: "CR after the chunk", body: "5\r\nhello\r0\r\n\r\n" },
  { name: "nothing after the chunk", body: "5\r\nhello0\r\n\r\n" },
  { name: "two other bytes after the chunk (SPILL)", body: "5\r\nhelloXX0\r\n\r\n" },
  { name: "more bytes than the size says", body: "5\r\nhello world\r\n0\r\n\r\n" },
  { name: "an empty line before the chunk", body: "\r\n5\r\nhello\r\n0\r\n\r\n" },
  { name: "LF ends the last chunk", body: "5\r\nhello\r\n0\n\r\n<" },
  { name: "CR ends the last chunk", body: "5\r\nhello\r\n0\r\r\n<" },
  { name: "LF ends the body", body: "5\r\nhello\r\n0\r\n\n<" },
  { name: "LF ends a trailer", body: "5\r\nhello\r\n0\r\nX-A: b\n\r\n<" },
  { name: "a folded trailer", body: "5\r\nhello\r\n0\r\nX-A: b\r\n c\r\n\r\n<" },
  { name: "a trailer without a colon", body: "5\r\nhello\r\n0\r\nX-A\r\n\r\n<" },
  { name: "a space before the colon of a trailer", body: "5\r\nhello\r\n0\r\nX-A : b\r\n\r\n<" },
  { name: "a trailer with NUL", body: "5\r\nhello\r\n0\r\nX-A: \0\r\n\r\n<" },
  { name: "a length as trailer", body: "5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n<" },
  { name: "a coding as trailer", body: "5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n<" },
  { name: "a last chunk with a sign", body: "5\r\nhello\r\n-0\r\n\r\n<" },
  { name: "a last chunk with 0x", body: "5\r\nhello\r\n0x0\r\n\r\n<" },
  { name: "a request line instead of a chunk", body: "<" },
];

const PROPER: readonly { readonly name: string; readonly body: string }[] = [
  { name: "plain", body: "5\r\nhello\r\n0\r\n\r\n" },
  { name: "several", body: "1\r\nh\r\n3\r\nell\r\n1\r\no\r\n0\r\n\r\n" },
  { name: "zeros in front", body: "00000005\r\nhello\r\n0000\r\n\r\n" },
  { name: "an extension", body: "5;a=b\r\nhello\r\n0;c\r\n\r\n" },
  { name: "a quoted extension", body: '5;a="b;c"\r\nhello\r\n0\r\n\r\n' },
  { name: "a trailer", body: "5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n" },
  { name: "capital digits", body: "A\r\nhellohello\r\n0\r\n\r\n" },
];

const markOf = (index: number): string => `c${String(index).padStart(3, "0")}`;

function bytesOf(body: string, mark: string): string {
  const head = [
    `POST /public/${mark} HTTP/1.1`,
    "Host: localhost",
    "Transfer-Encoding: chunked",
    "Connection: keep-alive",
  ];
  return request(head, body.replaceAll("<", request([`GET /admin/${mark} HTTP/1.1`, "Host: b"])));
}

describe("Sallyport", () => {
  const standing = useSallyport(undefined, { withoutToken: true });

  it(`ends the connection at anything that is not a chunk: ${BODIES.length} bodies`, async () => {
    const { gate, backend } = standing();
    const wrong = await allOf(BODIES, async ({ name, body }, index) => {
      const mark = markOf(index);
      const after = await attackMarked(gate, backend, mark, bytesOf(body, mark), {
        responses: Infinity,
      });
      const statuses = after.statuses.join();
      const fine = after.ended === "closed" && statuses === "400" && after.ran().length === 0;
      return fine ? [] : [{ name, statuses, ended: after.ended, ran: after.ran() }];
    });
    expect(wrong.flat()).toEqual([]);
    expect(backend.requests()).toEqual([]);
  });

  it.each(PROPER)("forwards $name", async ({ body }) => {
    const { gate, backend } = standing();
    const { statuses } = await attackMarked(gate, backend, "c000", bytesOf(body, "c000"));
    expect(statuses).toEqual([200]);
    expect(backend.requests().map((seen) => seen.body.toString())).toEqual([
      body.startsWith("A") ? "hellohello" : "hello",
    ]);
  });

  it("writes new chunks: no extension from the client reaches the backend", async () => {
    const { gate, backend } = standing();
    const marked = bytesOf("5;secret=1\r\nhello\r\n0;secret\r\n\r\n", "c000");
    await attackMarked(gate, backend, "c000", marked);
    const received = backend.connections.map((connection) => connection.received().toString());
    expect(received.filter((text) => text.includes("secret"))).toEqual([]);
    expect(backend.requests()[0]?.body.toString()).toBe("hello");
  });

  it("reads chunk lines that arrive byte by byte", async () => {
    const { gate, backend } = standing();
    const socket = await openSocket(gate);
    for (const byte of bytesOf("5;a=b\r\nhello\r\n0;c\r\n\r\n", "c000")) socket.write(byte);
    await until(() => backend.requests().length > 0);
    expect(backend.requests().map((seen) => seen.body.toString())).toEqual(["hello"]);
    socket.destroy();
  });
});

describe("a naive proxy", () => {
  const standing = useNaiveProxy();

  it("turns the chunks of a DELETE into requests, extensions or not", async () => {
    const { gate, backend } = standing();
    const smuggled = request(["GET /admin/c000 HTTP/1.1", "Host: b"]);
    const body = `${smuggled.length.toString(16)};a=b\r\n${smuggled}\r\n0\r\n\r\n`;
    await attackMarked(gate, backend, "c000", bytesOf(body, "c000").replace("POST", "DELETE"));
    const next = request(["GET /public/c000 HTTP/1.1", "Host: b"]);
    const { ran } = await attackMarked(gate, backend, "c000", next);
    expect(ran().map(({ startLine }) => startLine)).toContain("GET /admin/c000 HTTP/1.1");
  });
});
