/**
 * Requests sent before earlier answers. Node emits all of them as soon as they arrive. If a client pipelines a
 * thousand small requests for something large and reads nothing, a thousand answers wait in the proxy's memory: 45 KB
 * sent occupied 88 MB, without a token. And the second of two requests with side effects may reach the backend first,
 * which RFC 9112 §9.3.2 forbids. Sallyport starts a request only when the earlier answers on its connection are sent,
 * lets a hundred wait, and closes the connection of a client that sends more.
 */
import { describe, expect, it } from "vitest";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import type { RawScript } from "../support/raw-backend.ts";
import { exchange, openSocket, type Peer, request } from "../support/raw-client.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

const H = "Host: localhost";
const MEBIBYTE = 1024 * 1024;
const LARGE = `HTTP/1.1 200 OK\r\nContent-Length: ${MEBIBYTE}\r\n\r\n${"x".repeat(MEBIBYTE)}`;
const SMALL = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
/** The requests in order of arrival, over all connections. */
const arrived: string[] = [];
const script: RawScript = ({ startLine }) => {
  arrived.push(startLine.replace(" HTTP/1.1", ""));
  return { write: startLine.includes("big") ? LARGE : SMALL };
};

const get = (path: string, fields: readonly string[] = []): string =>
  request([`GET ${path} HTTP/1.1`, H, ...fields]);

/** Returns how many of a hundred large answers the backend has sent when nothing moves any more. */
async function askedFor(gate: Peer, seen: () => readonly string[]): Promise<number> {
  const socket = await openSocket(gate);
  socket.pause();
  socket.write(get("/public/big").repeat(100));
  let asked = 0;
  let since = performance.now();
  await until(() => {
    const now = seen().length;
    if (now !== asked) since = performance.now();
    asked = now;
    return asked > 0 && performance.now() - since > 500;
  }, 15_000);
  socket.destroy();
  return asked;
}

describe("Sallyport", () => {
  const standing = useSallyport(script, { withoutToken: true, config: {} });

  it("requests no more than can be sent to a client that does not read", async () => {
    const { gate, backend } = standing();
    // The kernel's buffers of both connections hold some 10 MB, and there is one more answer.
    expect(await askedFor(gate, () => backend.seen())).toBeLessThan(40);
  });

  it("forwards in the client's order", async () => {
    const { gate } = standing();
    for (let round = 0; round < 10; round += 1) {
      arrived.length = 0;
      const pipeline =
        request(["DELETE /public/a HTTP/1.1", H, "Content-Length: 5"], "12345") +
        request(["PUT /public/a HTTP/1.1", H, "Content-Length: 6"], "123456") +
        get("/public/z");
      const { responses } = await exchange(gate, pipeline, { responses: 3 });
      expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(arrived).toEqual(["DELETE /public/a", "PUT /public/a", "GET /public/z"]);
    }
  });

  it("answers a hundred that were sent at once", async () => {
    const { gate } = standing();
    const answer = await exchange(gate, get("/public/a").repeat(100), { responses: 100 });
    expect(answer.responses).toHaveLength(100);
  });

  it.each([
    ["too many", get("/public/a").repeat(2_000)],
    [
      "too many fields",
      get(
        "/public/a",
        Array.from({ length: 200 }, () => "x: a"),
      ).repeat(20),
    ],
  ])("ends the connection of who has %s wait", async (_what, bytes) => {
    const { gate } = standing();
    const count = async (): Promise<number> =>
      (await scrape(gate)).sum("sallyport_requests_rejected_total", "pipelined");
    const before = await count();
    const socket = await openSocket(gate);
    socket.resume().on("error", () => undefined);
    const closed = new Promise((resolve) => void socket.once("close", resolve));
    socket.write(bytes);
    await closed;
    expect(await count()).toBe(before + 1);
  });

  it("does not let a flood of pipelined refusals delay another connection", async () => {
    const { gate } = standing();
    const refused = get("/orders").repeat(100);
    const flood = exchange(gate, refused, { responses: 100 });
    const other = await exchange(gate, get("/public/a"));
    expect(other.last.status).toBe(200);
    expect((await flood).responses.map(({ status }) => status)).toEqual(Array(100).fill(401));
  });
});

describe("a naive proxy", () => {
  const standing = useNaiveProxy(script);

  it("buffers all of it", async () => {
    const { gate, backend } = standing();
    expect(await askedFor(gate, () => backend.seen())).toBeGreaterThan(90);
  });
});
