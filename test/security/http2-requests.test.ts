/**
 * Requests over HTTP/2 that two parsers could read differently. nghttp2 resets streams that RFC 9113 calls malformed;
 * the rest is refused like the same request over HTTP/1.1.
 */
import { once } from "node:events";
import { constants } from "node:http2";
import { describe, expect, it } from "vitest";
import { connectHttp2 } from "../support/http2-client.ts";
import {
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  FrameClient,
  GET,
  headerBlock,
} from "../support/http2-frames.ts";
import { useSallyport } from "../support/pair.ts";
import { until } from "../support/until.ts";

const config = { server: { http2: true, tls: "off" } };

describe("over HTTP/2", () => {
  const standing = useSallyport(undefined, { withoutToken: true, config });

  async function resetBy(fields: readonly (readonly [string, string])[]): Promise<number> {
    await using client = await FrameClient.connect(standing().gate);
    client.get(1, fields);
    await until(() => client.of(FRAME.reset).length + client.of(FRAME.goAway).length > 0);
    expect(standing().backend.seen()).toEqual([]);
    return client.of(FRAME.reset)[0]?.payload.readUInt32BE() ?? -1;
  }

  it.each([
    ["a name in upper case", [...GET, ["X-Upper", "1"]]],
    ["Connection", [...GET, ["connection", "close"]]],
    ["Transfer-Encoding", [...GET, ["transfer-encoding", "chunked"]]],
    ["Upgrade", [...GET, ["upgrade", "websocket"]]],
    ["Keep-Alive", [...GET, ["keep-alive", "timeout=5"]]],
    ["Proxy-Connection", [...GET, ["proxy-connection", "close"]]],
    ["TE that is not trailers", [...GET, ["te", "gzip"]]],
    ["a pseudo-header field twice", [...GET, [":path", "/admin"]]],
    ["a pseudo-header field after a regular field", [["x-first", "1"], ...GET]],
    ["a pseudo-header field that does not exist", [[":admin", "1"], ...GET]],
    ["a pseudo-header field of responses", [[":status", "200"], ...GET]],
    ["no method", GET.slice(1)],
    ["no path", GET.slice(0, 3)],
    ["an empty path", [...GET.slice(0, 3), [":path", ""]]],
    ["an invalid path", [...GET.slice(0, 3), [":path", "x"]]],
    ["a user in the authority", [...GET.slice(0, 2), [":authority", "a@b"], ...GET.slice(3)]],
    ["a length and no body", [...GET, ["content-length", "5"]]],
  ] satisfies [string, (readonly [string, string])[]][])(
    "%s resets the stream",
    async (_name, fields) => {
      expect(await resetBy(fields)).toBe(constants.NGHTTP2_PROTOCOL_ERROR);
    },
  );

  it.each([
    ["a line break in a value", "x-a", "1\r\nx-b: 2"],
    ["a NUL in a value", "x-a", "1\0x-b"],
    ["a space in a name", "x a", "1"],
  ])("a field with %s goes no further", async (_name, name, value) => {
    const { gate, backend } = standing();
    await using client = await FrameClient.connect(gate);
    client.get(1, [...GET, [name, value], ["x-last", "1"]]);
    await until(() => backend.requests().length > 0);
    const names = backend.requests()[0]?.headers.map(([each]) => each.toLowerCase());
    expect(names).toContain("x-last");
    expect(names?.filter((each) => /^x.[ab]$/.test(each))).toEqual([]);
  });

  it.each(["host", "x-a"])(
    "a HEAD with a NUL in %s and a malformed stream after it get their own answer and reset",
    async (name) => {
      const { gate, backend } = standing();
      await using client = await FrameClient.connect(gate);
      const head = [[":method", "HEAD"], ...GET.slice(1), [name, "a\0b"]] as const;
      client.get(1, head);
      client.get(3, [...GET, ["connection", "close"]]);
      await until(() => client.of(FRAME.headers).length + client.of(FRAME.reset).length >= 2);
      expect(client.of(FRAME.headers).map(({ stream }) => stream)).toEqual([1]);
      expect(client.of(FRAME.reset).map(({ stream }) => stream)).toEqual([3]);
      expect(client.of(FRAME.data)).toEqual([]);
      expect(backend.seen()).toEqual(["HEAD /public/x"]);
      expect(backend.requests()[0]?.headers).toContainEqual(["Host", "localhost"]);
    },
  );

  it.each([
    ["another Host", { host: "admin.example" }, 400],
    ["the same Host", { host: "LOCALHOST" }, 200],
    ["dot segments", { ":path": "/public/../secret" }, 400],
    ["an encoded slash", { ":path": "/public%2f..%2fsecret" }, 400],
    ["a fragment", { ":path": "/public/x#y" }, 400],
    ["a path with a byte beyond ASCII", { ":path": "/public/\u00e9" }, 400],
    ["a query with a byte beyond ASCII", { ":path": "/public/x?\u00e9" }, 400],
    ["CONNECT", { ":method": "CONNECT", ":path": undefined, ":scheme": undefined }, 405],
    ["TRACE", { ":method": "TRACE" }, 405],
    ["no token", { ":path": "/secret" }, 401],
  ])("%s", async (_name, fields, status) => {
    const { gate, backend } = standing();
    await using client = await connectHttp2({ port: gate.port });
    const answer = await client.ask({ ":authority": "localhost", ":path": "/public/x", ...fields });
    expect(answer.status).toBe(status);
    expect(backend.seen()).toHaveLength(status === 200 ? 1 : 0);
    if (status !== 200) expect(JSON.parse(answer.body)).toMatchObject({ success: false });
  });

  it("joins the parts of a cookie, and gives the backend one Host", async () => {
    const { gate, backend } = standing();
    await using client = await FrameClient.connect(gate);
    client.get(1, [...GET, ["cookie", "a=1"], ["cookie", "b=2"], ["host", "localhost"]]);
    await until(() => backend.requests().length > 0);
    const fields = backend.requests()[0]?.headers ?? [];
    expect(fields.filter(([name]) => name.toLowerCase() === "cookie")).toEqual([
      ["cookie", "a=1; b=2"],
    ]);
    expect(fields.filter(([name]) => name.toLowerCase() === "host")).toEqual([
      ["Host", "localhost"],
    ]);
  });

  it.each(["GET", "DELETE", "POST"])(
    "frames a body of %s that no field announces",
    async (method) => {
      const { gate, backend } = standing();
      await using client = await connectHttp2({ port: gate.port });
      const smuggled = "GET /admin HTTP/1.1\r\nHost: localhost\r\n\r\n";
      const answer = await client.ask({ ":method": method, ":path": "/public/x" }, smuggled);
      expect(answer.status).toBe(200);
      expect(backend.seen()).toEqual([`${method} /public/x`]);
      expect(backend.requests()[0]?.body.toString()).toBe(smuggled);
    },
  );

  it("does not take a body that was reset without an error for complete", async () => {
    const { gate, backend } = standing();
    await using client = await FrameClient.connect(gate);
    const post = [[":method", "POST"], ...GET.slice(1)] as const;
    client.send(frame(FRAME.headers, END_HEADERS, 1, headerBlock(post)));
    client.send(frame(FRAME.data, 0, 1, "half"));
    const arrived = (): string =>
      backend.connections.map((each) => each.received().toString("latin1")).join("");
    await until(() => arrived().includes("half"));
    client.send(frame(FRAME.reset, 0, 1, Buffer.alloc(4)));
    const cut = backend.connections.find((each) => each.received().includes("half"));
    if (cut?.socket.destroyed === false) await once(cut.socket, "close");
    expect(arrived()).not.toContain("\r\n0\r\n\r\n");
    expect(backend.seen()).toEqual([]);
    await using other = await connectHttp2({ port: gate.port });
    expect((await other.ask({ ":path": "/public/x" })).status).toBe(200);
    expect(gate.log().filter(({ level }) => level === "error")).toEqual([]);
  });

  it("does not take a request of length 0 for complete before its stream has ended", async () => {
    const { gate, backend } = standing();
    await using client = await FrameClient.connect(gate);
    const post = [[":method", "POST"], ...GET.slice(1), ["content-length", "0"]] as const;
    client.send(frame(FRAME.headers, END_HEADERS, 1, headerBlock(post)));
    await until(() => backend.connections.some((each) => each.received().includes("POST")));
    client.send(frame(FRAME.data, END_STREAM, 1, "more"));
    await until(() => client.closed);
    const cut = backend.connections.find((each) => each.received().includes("POST"));
    if (cut?.socket.destroyed === false) await once(cut.socket, "close");
    expect(backend.seen()).toEqual([]);
  });

  it("takes a request of length 0 for complete if its stream ends after its head", async () => {
    const { gate, backend } = standing();
    await using client = await FrameClient.connect(gate);
    const post = [[":method", "POST"], ...GET.slice(1), ["content-length", "0"]] as const;
    client.send(frame(FRAME.headers, END_HEADERS, 1, headerBlock(post)));
    client.send(frame(FRAME.data, END_STREAM, 1, ""));
    await until(() => backend.requests().length > 0);
    expect(backend.seen()).toEqual(["POST /public/x"]);
    expect(backend.requests()[0]?.body.toString()).toBe("");
  });

  it("ends a connection with a body that is longer than announced", async () => {
    const { gate, backend } = standing();
    await using client = await FrameClient.connect(gate);
    const post = [[":method", "POST"], ...GET.slice(1), ["content-length", "2"]] as const;
    client.send(frame(FRAME.headers, END_HEADERS, 1, headerBlock(post)));
    client.send(frame(FRAME.data, END_STREAM, 1, "more"));
    await until(() => client.closed);
    expect(client.of(FRAME.goAway)).toHaveLength(1);
    expect(backend.seen()).toEqual([]);
  });

  it.each([
    ["a length that its end does not reach", [["content-length", "4"]], undefined],
    ["trailers with a path", [], [[":path", "/admin"]]],
    ["trailers with Connection", [], [["connection", "close"]]],
  ] satisfies [string, (readonly [string, string])[], (readonly [string, string])[] | undefined][])(
    "a stream that is malformed by %s, all in one write, is not our error",
    async (_name, fields, trailers) => {
      const { gate, backend } = standing();
      await using client = await FrameClient.connect(gate);
      const post = [[":method", "POST"], ...GET.slice(1), ...fields] as const;
      const end = END_HEADERS | END_STREAM;
      const last =
        trailers === undefined
          ? frame(FRAME.data, END_STREAM, 1, "xy")
          : frame(FRAME.headers, end, 1, headerBlock(trailers));
      client.send(Buffer.concat([frame(FRAME.headers, END_HEADERS, 1, headerBlock(post)), last]));
      await until(() => client.of(FRAME.reset).length + client.of(FRAME.goAway).length > 0);
      await using other = await connectHttp2({ port: gate.port });
      expect((await other.ask({ ":path": "/public/x" })).status).toBe(200);
      expect(gate.log().filter(({ level }) => level === "error")).toEqual([]);
      expect(backend.seen()).not.toContain("POST /public/x");
    },
  );

  it("answers a head that is too large with 431, and continues to serve", async () => {
    const { gate } = standing();
    await using client = await connectHttp2({ port: gate.port });
    const large = { ":path": "/public/x", "x-large": "x".repeat(17 * 1024) };
    expect((await client.ask(large)).status).toBe(431);
    const many = Object.fromEntries(Array.from({ length: 120 }, (_, n) => [`x-${n}`, "1"]));
    expect((await client.ask({ ":path": "/public/x", ...many })).status).toBe(431);
    expect((await client.ask({ ":path": "/public/x" })).status).toBe(200);
  });

  it("is in the access log as HTTP/2.0", async () => {
    const { gate } = standing();
    await using client = await connectHttp2({ port: gate.port });
    await client.ask({ ":path": "/public/logged" });
    await until(() => gate.log().some(({ path }) => path === "/public/logged"));
    expect(gate.log().find(({ path }) => path === "/public/logged")).toMatchObject({
      protocol: "HTTP/2.0",
      status: 200,
    });
  });
});
