import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { expectEnvelope, expectRefusal } from "../support/envelope.ts";
import { chunked, exchange, request } from "../support/raw-client.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

const LIMIT = 64 * 1024;

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  gate = await startSallyport({
    withoutToken: true,
    target: backend.url,
    config: { server: { limits: { bodyBytes: "64KiB" } } },
  });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

const post = (...headers: string[]): string[] => [
  "POST /public/up HTTP/1.1",
  "Host: localhost",
  ...headers,
];

describe("a body over the limit", () => {
  it("gets 413 because of its length, and the backend sees no request", async () => {
    const seen = backend.requests.length;
    const before = (await scrape(gate)).sum("sallyport_requests_rejected_total", "body_too_large");
    const bytes = request(post(`Content-Length: ${LIMIT + 1}`), "x".repeat(LIMIT + 1));
    expectRefusal(await exchange(gate, bytes, { responses: Infinity }), 413);
    expect(backend.requests.length).toBe(seen);
    const after = (await scrape(gate)).sum("sallyport_requests_rejected_total", "body_too_large");
    expect(after).toBe(before + 1);
  });

  it("gets 413 while it streams, and the request to the backend is aborted", async () => {
    const abandoned = backend.abandoned();
    const bytes = request(post("Transfer-Encoding: chunked"), chunked("x".repeat(LIMIT + 1)));
    expectRefusal(await exchange(gate, bytes, { responses: Infinity }), 413);
    await until(() => backend.abandoned() === abandoned + 1);
  });

  it("is one byte larger than what passes, with a length or in chunks", async () => {
    const body = "x".repeat(LIMIT);
    const sized = await ask(gate, "/public/up", { method: "PUT", body });
    expect(echoedBy(sized).bodyLength).toBe(LIMIT);
    const bytes = request(post("Transfer-Encoding: chunked"), chunked(body));
    expect(echoedBy((await exchange(gate, bytes)).last).bodyLength).toBe(LIMIT);
  });
});

describe("Expect: 100-continue", () => {
  it("gets 100 when the request is forwarded", async () => {
    let sent = false;
    const bytes = request(post("Content-Length: 5", "Expect: 100-continue"));
    const { responses, last } = await exchange(gate, bytes, {
      onBytes(raw, write) {
        if (sent || !raw.startsWith("HTTP/1.1 100 ")) return;
        sent = true;
        write("hello");
      },
    });
    expect(responses.map(({ status }) => status)).toEqual([100, 200]);
    expect(echoedBy(last).bodyLength).toBe(5);
    expect(echoedBy(last).header("expect")).toBeUndefined();
  });

  it("is refused without a 100 when the body is too large or the caller is unauthenticated", async () => {
    const large = request(post(`Content-Length: ${LIMIT + 1}`, "Expect: 100-continue"));
    const answer = await exchange(gate, large);
    expect(answer.responses.map(({ status }) => status)).toEqual([413]);
    const lines = ["POST /orders HTTP/1.1", "Host: a", "Content-Length: 5"];
    const anonymous = await exchange(gate, request([...lines, "Expect: 100-continue"]));
    expect(anonymous.responses.map(({ status }) => status)).toEqual([401]);
  });

  it("gets 417 for any other expectation", async () => {
    const bytes = request(post("Content-Length: 5", "Expect: 200-ok"), "hello");
    expectEnvelope((await exchange(gate, bytes)).last, 417);
  });
});

describe("trailers", () => {
  it("reach the client", async () => {
    const answer = await ask(gate, "/public/trailers");
    expect(answer.body).toBe("body");
    expect(answer.trailers).toEqual({ "grpc-status": "0" });
  });

  it("do not reach the backend", async () => {
    const head = post("Transfer-Encoding: chunked", "Trailer: X-Checksum", "TE: trailers");
    const bytes = request(head, chunked("hello", ["X-Checksum: abc"]));
    const { last } = await exchange(gate, bytes);
    expect(last.status).toBe(200);
    expect(echoedBy(last).bodyLength).toBe(5);
    expect(echoedBy(last).trailers).toEqual([]);
  });
});

describe("a persistent connection", () => {
  it("stays usable after a refused request with a small body", async () => {
    const refused = request(["POST /orders HTTP/1.1", "Host: a", "Content-Length: 5"], "hello");
    const next = request(["GET /public/next HTTP/1.1", "Host: a"]);
    const { responses } = await exchange(gate, refused + next, { responses: 2 });
    expect(responses.map(({ status }) => status)).toEqual([401, 200]);
    expect(echoedBy(responses[1] ?? { body: "" }).url).toBe("/public/next");
  });
});
