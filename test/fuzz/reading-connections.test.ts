import { describe, expect, test } from "vitest";
import { admitted, PLAIN } from "../../fuzz/wire/dial.ts";
import { readProxyHeader } from "../../fuzz/wire/proxy-header.ts";
import { readStreams } from "../../fuzz/wire/streams.ts";
import {
  END_HEADERS,
  END_STREAM,
  type Field,
  FRAME,
  frame,
  headerBlock,
} from "../../tools/selftest/http2/http2-frames.ts";
import { onStream } from "../../tools/selftest/http2/http2-requests.ts";

const GET: readonly Field[] = [
  [":method", "GET"],
  [":scheme", "https"],
  [":authority", "localhost"],
  [":path", "/a"],
];
const POST: readonly Field[] = [[":method", "POST"], ...GET.slice(1)];
const get = (stream: number, ...more: Field[]): string =>
  onStream(stream, { fields: [...GET, ...more] });
const text = (...frames: Buffer[]): string => Buffer.concat(frames).toString("latin1");

describe("streams", () => {
  test("are read with their bodies and trailers, cookies joined, and one host", () => {
    const { streams, clean } = readStreams(
      get(1, ["cookie", "a=1"], ["x-a", "1"], ["cookie", "b=2"], ["host", "LOCALHOST"]) +
        onStream(3, { fields: POST, body: ["bo", "dy"], trailers: [["x-sum", "1"]] }),
    );
    expect(clean).toBe(true);
    expect(streams.map(({ request, owed }) => [request?.body, request?.trailers, owed])).toEqual([
      ["", [], true],
      ["body", [["x-sum", "1"]], true],
    ]);
    expect(streams[0]?.request?.fields).toEqual([
      ["x-a", "1"],
      ["cookie", "a=1; b=2"],
      ["host", "localhost"],
    ]);
  });

  test.each<[string, readonly Field[]]>([
    ["a name in upper case", [...GET, ["X-A", "1"]]],
    ["Connection", [...GET, ["connection", "close"]]],
    ["two paths", [[":path", "/b"], ...GET]],
    ["a pseudo-header field after others", [["x-a", "1"], ...GET]],
    ["no path", GET.slice(0, 3)],
    ["another host", [...GET, ["host", "a.test"]]],
    ["two hosts", [...GET, ["host", "localhost"], ["host", "localhost"]]],
    ["an invalid length", [...GET, ["content-length", "+1"]]],
    ["CONNECT", [[":method", "CONNECT"], ...GET.slice(1)]],
  ])("must not reach a backend with %s, while others may", (_name, fields) => {
    const { streams } = readStreams(onStream(1, { fields }) + get(3));
    expect(streams.map(({ request }) => request?.target)).toEqual([undefined, "/a"]);
  });

  test("lose invalid fields, and then need not be answered", () => {
    const { streams, clean } = readStreams(get(1, ["x-a", "1\0"], ["host", "a b"], ["x b", "1"]));
    expect(streams[0]?.request?.fields).toEqual([["host", "localhost"]]);
    expect([clean, streams[0]?.owed]).toEqual([true, false]);
  });

  test.each([
    ["is reset", frame(FRAME.reset, 0, 1, "\0\0\0\0")],
    ["has trailers with a path", frame(FRAME.headers, 5, 1, headerBlock([[":path", "/b"]]))],
  ])("have an incomplete body if one of them %s", (_name, end) => {
    const head = frame(FRAME.headers, END_HEADERS, 1, headerBlock(POST));
    const half = frame(FRAME.data, 0, 1, "half");
    expect(readStreams(text(head, half, end)).streams[0]?.request?.body).toBeUndefined();
  });

  const head = frame(FRAME.headers, END_HEADERS | END_STREAM, 1, headerBlock(GET));
  test.each([
    ["DATA before a head", [frame(FRAME.data, 0, 1, "x"), head]],
    ["CONTINUATION alone", [head, frame(FRAME.continuation, END_HEADERS, 1, "")]],
    ["a short PING", [frame(FRAME.ping, 0, 0, "abc"), head]],
    ["a window update of 0", [frame(FRAME.windowUpdate, 0, 0, "\0\0\0\0"), head]],
    ["an even stream id", [head, frame(FRAME.headers, 5, 2, headerBlock(GET))]],
    ["half a frame", [head, head.subarray(0, 20)]],
  ])("belong to a connection that may be closed after %s", (_name, frames) => {
    const { streams, clean } = readStreams(text(...frames));
    expect([streams.length, clean]).toEqual([1, false]);
  });
});

describe("a header of the PROXY protocol", () => {
  const v2 = (command: number, family: number, content: string): string =>
    `\r\n\r\n\0\r\nQUIT\n${String.fromCharCode(command, family, 0, content.length)}${content}`;
  test.each([
    ["PROXY TCP4 1.2.3.4 10.0.0.1 1 2\r\nGET", "1.2.3.4", 33],
    ["PROXY TCP6 2001:DB8:0::7 ::1 1 2\r\n", "2001:db8::7", 34],
    ["PROXY TCP6 ::ffff:1.2.3.4 ::1 1 2\r\n", "1.2.3.4", 35],
    ["PROXY UNKNOWN ffff\r\n", undefined, 20],
    [v2(0x21, 0x11, "\u0001\u0002\u0003\u0004abcdefgh."), "1.2.3.4", 29],
    [v2(0x20, 0x11, ""), undefined, 16],
  ])("%j names %s", (bytes, source, end) => {
    expect(readProxyHeader(bytes)).toEqual({ source, end });
  });

  test.each([
    ...["PROXY TCP4 1.2.3.4 10.0.0.1 1 2\n", "PROXY TCP4 1.2.3.4 10.0.0.1 1 65536\r\n", "PROXY"],
    ...["PROXY TCP4 ::1 ::1 1 2\r\n", "PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n", "GET / HTTP/1.1\r\n"],
    ...[
      `PROXY UNKNOWN ${"x".repeat(92)}\r\n`,
      v2(0x21, 0x11, "abcd"),
      v2(0x31, 0x11, "abcdefghijkl"),
    ],
  ])("is invalid: %j", (bytes) => {
    expect(readProxyHeader(bytes)).toBeUndefined();
  });
});

describe("the input of the HTTP reader", () => {
  const header = "PROXY TCP4 1.2.3.4 10.0.0.1 1 2\r\n";
  const from = "127.9.9.9";
  test.each([
    ["only the negotiated protocol", { secure: true, offers: ["h2"] }, undefined],
    ["HTTP/1.1 without ALPN", { secure: true }, { client: from, text: "x" }],
    [
      "the client that a trusted proxy names",
      { trusted: true, header },
      { client: "1.2.3.4", text: "x" },
    ],
    ["nothing from a trusted proxy that names no client", { trusted: true }, undefined],
    [
      "including the header, if it comes from another client",
      { header },
      { client: from, text: `${header}x` },
    ],
  ])("is %s", (_what, dial, expected) => {
    expect(admitted({ ...PLAIN, ...dial }, from, "x", false)).toEqual(expected);
  });
});
