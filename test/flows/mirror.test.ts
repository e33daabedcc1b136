/** Copies of requests for another upstream: complete, with the identity of the real ones, and at nobody's expense. */
import { afterEach, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { type RawScript, startRawBackend } from "../support/raw-backend.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { exchange, request } from "../support/raw-client.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

let stack = new AsyncDisposableStack();
afterEach(async () => {
  const used = stack;
  stack = new AsyncDisposableStack();
  await used.disposeAsync();
});

async function start(shadow: string, mirror: object = {}, more: object = {}) {
  const real = stack.use(await startEchoBackend());
  const gate = stack.use(
    await startSallyport({
      target: real.url,
      config: {
        upstreams: {
          app: { targets: [real.url] },
          shadow: { targets: [shadow], timeouts: { response: "2s" }, ...more },
        },
        routes: [
          { name: "all", path: "/", upstream: "app", mirror: { upstream: "shadow", ...mirror } },
        ],
      },
    }),
  );
  return { real, gate };
}

/** Waits until so many copies have met with this. */
async function became(gate: Sallyport, result: string, copies: number): Promise<void> {
  const series = `sallyport_mirrored_requests_total{upstream="shadow",result="${result}"}`;
  await until(async () => (await scrape(gate)).value(series) === copies);
}

/** Posts a body without a length to `/orders`. @returns the status. */
async function chunked(gate: Sallyport, body: string): Promise<number> {
  const head = ["POST /orders HTTP/1.1", "Host: localhost", `Authorization: Bearer ${gate.token}`];
  const framed = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  const bytes = request([...head, "Transfer-Encoding: chunked"]) + framed;
  return (await exchange(gate, bytes)).last.status;
}

/** The fields of the first request. */
const fieldsOf = ({ requests: [first] }: EchoBackend): string[] => [...(first?.rawHeaders ?? [])];

describe("the copy of a request", () => {
  it("is the real one with its identity, its path, its query and its body", async () => {
    const shadow = stack.use(await startEchoBackend());
    const { real, gate } = await start(shadow.url);
    const body = "x".repeat(40_000);
    const sent = { method: "POST", token: gate.token, body, headers: { "x-own": "a" } };
    expect((await ask(gate, "/orders?a=1", sent)).status).toBe(200);
    await became(gate, "answered", 1);
    const [[mine], [copy]] = [real.requests, shadow.requests];
    expect(copy).toMatchObject({
      method: "POST",
      url: "/orders?a=1",
      bodySha256: mine?.bodySha256,
    });
    expect(fieldsOf(shadow)).toEqual(fieldsOf(real));
    expect(fieldsOf(shadow)).toContain("alice");
    expect(fieldsOf(shadow).join(" ")).not.toContain(gate.token);
  });

  it("of a chunked body has a length", async () => {
    const shadow = stack.use(await startRawBackend());
    const { gate } = await start(shadow.url);
    const inner = "GET /admin HTTP/1.1\r\nHost: x\r\n\r\n";
    expect(await chunked(gate, inner)).toBe(200);
    await until(() => shadow.seen().length > 0);
    expect(shadow.seen()).toEqual(["POST /orders"]);
    expect(shadow.requests()[0]?.body.toString()).toBe(inner);
  });

  it("is made of some requests only, as percent says", async () => {
    const shadow = stack.use(await startEchoBackend());
    const { real, gate } = await start(shadow.url, { percent: 30 });
    const asked = Array.from({ length: 200 }, () => ask(gate, "/x", { token: gate.token }));
    await Promise.all(asked);
    await until(() => shadow.requests.length > 0);
    expect(real.requests).toHaveLength(200);
    // 60 are expected; beyond six standard deviations, once in a billion.
    expect(shadow.requests.length).toBeGreaterThan(20);
    expect(shadow.requests.length).toBeLessThan(100);
  });

  it("is not made of what is refused", async () => {
    const shadow = stack.use(await startEchoBackend());
    const { gate } = await start(shadow.url);
    expect((await ask(gate, "/x")).status).toBe(401);
    expect((await ask(gate, "/x", { token: gate.token })).status).toBe(200);
    await became(gate, "answered", 1);
    expect(shadow.requests).toHaveLength(1);
  });

  it("is not made of a body that is too large", async () => {
    const shadow = stack.use(await startEchoBackend());
    const { real, gate } = await start(shadow.url, { bodyBytes: "32KiB" });
    const post = (body: string) => ask(gate, "/x", { method: "POST", token: gate.token, body });
    await post("x".repeat(32 * 1024 + 1));
    expect(await chunked(gate, "x".repeat(100_000))).toBe(200);
    await post("x".repeat(32 * 1024));
    await became(gate, "body_too_large", 2);
    await became(gate, "answered", 1);
    expect(real.requests.map(({ bodyLength }) => bodyLength)).toEqual([32_769, 100_000, 32_768]);
    expect(shadow.requests.map(({ bodyLength }) => bodyLength)).toEqual([32_768]);
  });
});

describe("a mirror costs the client nothing", () => {
  const scripts: Record<string, RawScript> = {
    hangs: () => "hang",
    resets: () => ({ write: "", then: "reset" }),
    "talks no HTTP": () => ({ write: "\0\0\0", then: "close" }),
    "answers with 500": () => ({ write: "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n" }),
    "answers without end": () => ({
      write: `HTTP/1.1 200 OK\r\n\r\n${"x".repeat(4 * 1024 * 1024)}`,
    }),
  };
  for (const [what, script] of Object.entries(scripts)) {
    it(`if it ${what}`, async () => {
      const shadow = stack.use(await startRawBackend(script));
      const { gate } = await start(
        shadow.url,
        {},
        { connections: 4, timeouts: { response: "1s" } },
      );
      const body = "x".repeat(20_000);
      for (let i = 0; i < 20; i += 1) {
        const method = i % 2 === 0 ? "POST" : "GET";
        const more = method === "POST" ? { body } : {};
        const { status } = await ask(gate, "/x", { method, token: gate.token, ...more });
        expect(status).toBe(200);
      }
      const all = async (): Promise<number> =>
        (await scrape(gate)).sum("sallyport_mirrored_requests_total");
      await until(async () => (await all()) === 20);
      const { body: log } = await ask({ port: gate.adminPort }, "/metrics");
      expect(log).toMatch(/^sallyport_upstream_requests_in_flight\{upstream="shadow"\} 0$/m);
      expect(log).toMatch(/^sallyport_http_requests_in_flight 0$/m);
    });
  }

  it("if it is not there, or has no connection left", async () => {
    const hanging = stack.use(await startRawBackend(() => "hang"));
    const { gate } = await start(hanging.url, {}, { connections: 2 });
    const begun = Date.now();
    for (let i = 0; i < 10; i += 1) {
      expect((await ask(gate, "/x", { token: gate.token })).status).toBe(200);
    }
    await became(gate, "no_connection", 8);
    await became(gate, "timeout", 2);
    // Ten requests did not wait for any of the time-outs of 2 s.
    expect(Date.now() - begun).toBeLessThan(15_000);
    await hanging.close();
    expect((await ask(gate, "/x", { token: gate.token })).status).toBe(200);
    await became(gate, "failed", 1);
  });
});
