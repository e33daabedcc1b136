/** Bugs found by the fuzzer, each with the bytes that revealed it. */
import { describe, expect, it } from "vitest";
import { useSallyport } from "../support/pair.ts";
import type { RawScript } from "../support/raw-backend.ts";
import { chunked, exchange, request } from "../support/raw-client.ts";

const HOST = "Host: localhost";
const WEBSOCKET = [
  ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/** Answers `/public/slow` byte by byte. */
const script: RawScript = ({ startLine }) =>
  startLine.includes("/slow") ? { write: OK, everyMs: 5 } : { write: OK };

const standing = useSallyport(script);

function uncaught(): unknown[] {
  return standing()
    .gate.log()
    .filter(({ level }) => level === "error");
}

describe("an upgrade request while a response is in progress", () => {
  const slow = request(["GET /public/slow HTTP/1.1", HOST]);

  it.each([
    ["CONNECT", request(["CONNECT a.test:80 HTTP/1.1", HOST])],
    ["a WebSocket", request(["GET /public/ws HTTP/1.1", HOST, ...WEBSOCKET])],
    ["h2c", request(["GET /public/x HTTP/1.1", HOST, "Connection: Upgrade", "Upgrade: h2c"])],
  ])(
    "(%s) ends the connection after that response, without an exception",
    async (_name, second) => {
      const { gate } = standing();
      const answer = await exchange(gate, slow + second, { responses: Infinity });
      expect(answer.ended).toBe("closed");
      expect(answer.responses[0]?.body).toBe("ok");
      expect(uncaught()).toEqual([]);
    },
  );
});

describe("a request with another HTTP version", () => {
  it.each(["HTTP/0.9", "HTTP/2.0"])("(%s) is refused", async (version) => {
    const { gate, backend } = standing();
    const answer = await exchange(gate, request([`GET /public/x ${version}`, HOST]));
    expect(answer.last.status).toBe(400);
    expect(backend.seen()).toEqual([]);
  });
});

describe("other white space than a single space before a token", () => {
  it.each(["\t", "\u00a0", " \t", "\u00a0 "])("(%j) is part of the token", async (blank) => {
    const { gate, backend } = standing();
    const bytes = request(["GET /x HTTP/1.1", HOST, `Authorization: Bearer ${blank}${gate.token}`]);
    expect((await exchange(gate, bytes)).last.status).toBe(401);
    expect(backend.seen()).toEqual([]);
  });
});

describe("a WebSocket handshake without exactly one key", () => {
  it.each([
    ["none", WEBSOCKET.slice(0, -1)],
    ["two", [...WEBSOCKET, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]],
  ])("(%s) is refused", async (_name, fields) => {
    const { gate, backend } = standing();
    const { last } = await exchange(gate, request(["GET /public/ws HTTP/1.1", HOST, ...fields]));
    expect(last.status).toBe(400);
    expect(backend.seen()).toEqual([]);
  });
});

describe("Expect: 100-continue", () => {
  const expecting = ["POST /public/x HTTP/1.1", HOST, "Expect: 100-continue"];

  it("of a pipelined request is never answered inside another response", async () => {
    const { gate } = standing();
    const second = request([...expecting, "Content-Length: 1"], "x");
    const bytes = request(["GET /public/slow HTTP/1.1", HOST]) + second;
    const { responses, ended } = await exchange(gate, bytes, { responses: 2 });
    expect(ended).toBe("complete");
    const final = responses.filter(({ status }) => status !== 100);
    expect(final.map(({ status, body }) => [status, body])).toEqual([
      [200, "ok"],
      [200, "ok"],
    ]);
  });

  it("before an unreadable body is refused, without an exception", async () => {
    const { gate } = standing();
    const chunks = request([...expecting, "Transfer-Encoding: chunked"], `zz${chunked("x")}`);
    const login = request(
      ["POST /api/authenticate HTTP/1.1", HOST, "Expect: 100-continue", "Content-Length: 1"],
      "xgarbage\r\n\r\n",
    );
    for (const bytes of [chunks, chunks, chunks, login]) {
      const answer = await exchange(gate, bytes, { responses: Infinity });
      expect(answer.ended).toBe("closed");
      expect(answer.last.status).toBeGreaterThanOrEqual(400);
    }
    expect(uncaught()).toEqual([]);
  });
});

describe("an invalid request after a complete one", () => {
  it.each([
    ["a head that is too large", `GET /public/b HTTP/1.1\r\nX: ${"a".repeat(20_000)}\r\n\r\n`, 431],
    ["garbage", "\x00\x01\x02 nonsense\r\n\r\n", 400],
  ])("(%s) does not prevent the first response", async (_name, broken, refused) => {
    const { gate } = standing();
    for (const path of ["/public/fast", "/public/slow"]) {
      const whole = request([`GET ${path} HTTP/1.1`, HOST]);
      const answer = await exchange(gate, whole + whole + broken, { responses: Infinity });
      expect(answer.ended).toBe("closed");
      expect(answer.responses.map(({ status }) => status)).toEqual([200, 200, refused]);
      expect(answer.responses[0]?.body).toBe("ok");
    }
  });

  it.each([
    ["a missing token", request(["GET /orders HTTP/1.1", HOST]), 401],
    ["a method", request(["PUT /api/authenticate HTTP/1.1", HOST]), 405],
  ])("is refused separately after the refusal of %s", async (_name, refused, status) => {
    const { gate } = standing();
    const tooLarge = `HEAD /public/b HTTP/1.1\r\nX: ${"a".repeat(20_000)}\r\n\r\n`;
    const answer = await exchange(gate, refused + tooLarge, { responses: Infinity });
    expect(answer.ended).toBe("closed");
    expect(answer.responses.map((response) => response.status)).toEqual([status, 431]);
  });

  it("(a second request after Proxy-Connection: close) does not prevent the first response", async () => {
    const { gate } = standing();
    const first = request(["GET /public/a HTTP/1.1", HOST, "Proxy-Connection: close"]);
    const second = request(["GET /public/a HTTP/1.1", HOST]);
    const answer = await exchange(gate, first + second, { responses: Infinity });
    expect([answer.responses[0]?.status, answer.ended]).toEqual([200, "closed"]);
  });
});
