/**
 * Requests that are sent before the answers to those before them. Node hands all of them out as soon as they arrive. A
 * client that pipelines a thousand small requests for something large, and reads nothing, has a thousand answers wait for
 * it in the proxy's memory: 45 KB sent held 88 MB, without a token. And of two that change something the second may reach
 * the backend first, which RFC 9112 §9.3.2 forbids.
 *
 * Sallyport begins one request of a connection when the answers before it are out, lets a hundred wait, and ends the
 * connection of who sends more.
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
/** In the order in which they came, whatever connection they came on. */
const arrived: string[] = [];
const script: RawScript = ({ startLine }) => {
  arrived.push(startLine.replace(" HTTP/1.1", ""));
  return { write: startLine.includes("big") ? LARGE : SMALL };
};

const get = (path: string, fields: readonly string[] = []): string =>
  request([`GET ${path} HTTP/1.1`, H, ...fields]);

/** How many of a hundred large answers the backend has been asked for when nothing moves any more. */
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
  const standing = useSallyport(script);

  it("asks for no more than a client that does not read can be sent", async () => {
    const { gate, backend } = standing();
    // What the kernel's buffers of both connections hold, some 10 MB, and one answer.
    expect(await askedFor(gate, () => backend.seen())).toBeLessThan(40);
  });

  it("sends on in the order in which the client sent", async () => {
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

  it("lets a connection that pipelines a flood of refusals not hold up another", async () => {
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

  it("takes all of it into its memory", async () => {
    const { gate, backend } = standing();
    expect(await askedFor(gate, () => backend.seen())).toBeGreaterThan(90);
  });
});
