/**
 * Anonymous answers. Node itself answers requests that its parser refuses, with an empty body, no id and no log line:
 * a client cannot tell the proxy from anything else on the way, and no one finds the request in the log. With
 * Sallyport, each of these answers has the envelope, and its id is in the log.
 */
import { describe, expect, it } from "vitest";
import { expectRefusal } from "../support/envelope.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { chunked, exchange, openSocket, request, type Peer } from "../support/raw-client.ts";
import { until } from "../support/until.ts";

const post = (headers: readonly string[], body = ""): string =>
  request(["POST /public/x HTTP/1.1", "Host: localhost", ...headers], body);
const CHUNKED = "Transfer-Encoding: chunked";

const CASES: readonly { name: string; bytes: string; status: number; naive?: true }[] = [
  { name: "no HTTP at all", bytes: "hello\r\n\r\n", status: 400, naive: true },
  { name: "a header without a colon", bytes: post(["what is this"]), status: 400, naive: true },
  { name: "a NUL in a header", bytes: post(["X-A: a\0b"]), status: 400, naive: true },
  { name: "the preface of HTTP/2", bytes: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", status: 400 },
  { name: "a future HTTP version", bytes: "GET / HTTP/9.9\r\n\r\n", status: 400, naive: true },
  {
    name: "a body that is announced as too large",
    bytes: post(["Content-Length: 2000"]),
    status: 413,
  },
  {
    name: "endless chunk extensions",
    bytes: post([CHUNKED], `4;${"x".repeat(20_000)}\r\nabcd\r\n0\r\n\r\n`),
    status: 413,
    naive: true,
  },
  {
    name: "an expectation",
    bytes: post(["Expect: miracles", "Content-Length: 0"]),
    status: 417,
    naive: true,
  },
  {
    name: "a header of 20 KiB",
    bytes: post([`X-A: ${"a".repeat(20 * 1024)}`]),
    status: 431,
    naive: true,
  },
  {
    name: "a header of many fields",
    bytes: post(Array.from({ length: 3000 }, (_, index) => `x${index}: ${index}`)),
    status: 431,
    naive: true,
  },
];

describe("Sallyport", () => {
  const standing = useSallyport(undefined, {
    withoutToken: true,
    config: { server: { limits: { bodyBytes: "1KiB" } } },
  });

  it.each(CASES)("answers $name with the envelope and $status", async ({ bytes, status }) => {
    const { gate } = standing();
    const answer = await exchange(gate, bytes, { responses: Infinity });
    expectRefusal(answer, status);
    const { id }: { id: number } = JSON.parse(answer.last.body);
    await until(() => gate.log().some((line) => line["id"] === id));
    expect(gate.log().find((line) => line["id"] === id)).toMatchObject({
      status,
      request_id: answer.last.header("x-request-id"),
    });
  });

  it("ends a chunked body that grows too large, with 413", async () => {
    const { gate } = standing();
    const answer = await exchange(gate, post([CHUNKED], chunked("x".repeat(5000))), {
      responses: Infinity,
    });
    expectRefusal(answer, 413);
  });

  it("counts these as requests, not as crashes", async () => {
    const { gate } = standing();
    const { last } = await exchange(gate, post(["Content-Length: 2"], "hi"));
    expect(last.status).toBe(200);
    expect(gate.exited()).toBe(false);
  });
});

describe("Sallyport with a slow client", () => {
  const standing = useSallyport(undefined, {
    withoutToken: true,
    config: { server: { timeouts: { header: "300ms", request: "800ms" } } },
  });

  it("answers a header that does not end with 408", async () => {
    const bytes = "GET /public/x HTTP/1.1\r\nHost: localhost\r\n";
    const answer = await exchange(standing().gate, bytes, {
      responses: Infinity,
      timeoutMs: 8000,
    });
    expectRefusal(answer, 408);
  });

  it("ends a body that does not arrive", async () => {
    const answer = await exchange(standing().gate, post(["Content-Length: 10"], "half"), {
      responses: Infinity,
      timeoutMs: 8000,
    });
    expect(answer.ended).toBe("closed");
    expect(answer.responses.every(({ status }) => status === 408)).toBe(true);
  });

  it("closes a connection on which nothing arrives", async () => {
    expect(await closesBySelf(standing().gate, 8000)).toBe(true);
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy();

  it.each(CASES.filter((row) => row.naive === true))(
    "answers $name with an empty body",
    async ({ bytes, status }) => {
      const { last } = await exchange(standing().gate, bytes);
      expect([last.status, last.body]).toEqual([status, ""]);
    },
  );
});

async function closesBySelf(peer: Peer, timeoutMs: number): Promise<boolean> {
  const socket = await openSocket(peer);
  let closed = false;
  socket.on("close", () => (closed = true)).resume();
  await until(() => closed, timeoutMs);
  return closed;
}
