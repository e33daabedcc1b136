import { request as httpsRequest } from "node:https";
import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ask, fieldsOf } from "../../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../../support/echo-backend.ts";
import { type LogLine, startSallyport, type Sallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

let backend: EchoBackend;
beforeAll(async () => {
  backend = await startEchoBackend();
});
afterAll(() => backend.close());

/** Opens a response that the backend does not end. */
async function openStream({ port, ca }: Sallyport): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const where = { host: "127.0.0.1", port, ca, servername: "localhost", path: "/public/sse" };
  httpsRequest({ ...where, agent: false }, resolve)
    .on("error", reject)
    .end();
  return promise;
}

function lineOf(gate: Sallyport, path: string): LogLine | undefined {
  return gate.log().find((line) => line["msg"] === "request" && line["path"] === path);
}

it.each([1, 2])(
  "requests cut off by drain.timeout get a response if possible, and are logged as such, with %i workers",
  { timeout: 60_000 },
  async (workers) => {
    await using gate = await startSallyport({
      target: backend.url,
      config: { server: { workers, drain: { delay: "0s", timeout: "400ms" } } },
    });
    const unanswered = ask(gate, "/public/hang");
    const login = ask(gate, "/public/slow?ms=60000", { method: "POST", body: "{}" });
    const stream = await openStream(gate);
    const read = text(stream).catch((error: unknown) => error);
    await until(async () => (await scrape(gate)).value("sallyport_http_requests_in_flight") === 3);
    const admin = { port: gate.adminPort };
    await ask(admin, "/-/drain", { method: "POST" });

    for (const answer of await Promise.all([unanswered, login])) {
      expect(answer.status).toBe(503);
      expect(answer.headers["retry-after"]).toBeDefined();
      expect(answer.headers.connection).toBe("close");
      expect(fieldsOf(answer)).toMatchObject({ success: false });
    }
    expect(await read).toBeInstanceOf(Error);
    await until(async () => (await ask(admin, "/-/drain")).body.includes("drained"));

    await until(() => lineOf(gate, "/public/sse") !== undefined);
    const own = { level: "warn", reason: "drain_timeout", status: 503, source: "self" };
    expect(lineOf(gate, "/public/hang")).toMatchObject(own);
    expect(lineOf(gate, "/public/slow")).toMatchObject(own);
    expect(lineOf(gate, "/public/sse")).toMatchObject({
      level: "warn",
      reason: "drain_timeout",
      status: 200,
      source: "upstream",
    });
    const page = await scrape(gate);
    expect(page.value('sallyport_requests_rejected_total{reason="drain_timeout"}')).toBe(3);
    expect(page.sum("sallyport_upstream_errors_total", 'reason="aborted"')).toBe(0);
    expect(page.sum("sallyport_http_requests_total", 'code="499"')).toBe(0);
    expect(page.sum("sallyport_http_requests_total", 'code="503"')).toBe(2);
    expect(await gate.stop()).toBe(0);
  },
);

it("a client that is disconnected because it neither reads nor sends is logged as stalled", async () => {
  await using gate = await startSallyport({
    target: backend.url,
    config: {
      server: { timeouts: { request: "1s", header: "1s" } },
      upstreams: {
        app: { queue: { timeout: "1s" }, timeouts: { connect: "1s", response: "1s", idle: "1s" } },
      },
    },
  });
  const { port, ca } = gate;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const path = "/public/big?bytes=50000000";
  httpsRequest(
    { host: "127.0.0.1", port, ca, servername: "localhost", path, agent: false },
    resolve,
  )
    .on("error", reject)
    .end();
  const answer = await promise;
  answer.on("error", () => undefined);
  await until(() => lineOf(gate, "/public/big") !== undefined, 30_000);
  answer.destroy();
  expect(lineOf(gate, "/public/big")).toMatchObject({ status: 200, reason: "stalled" });
}, 60_000);
