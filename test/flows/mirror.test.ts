/** Copies of requests to another upstream: complete, with the same identity, and without any cost to the client. */
import { describe, expect, it } from "vitest";
import { ask, type Question } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { type RawScript, startRawBackend } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";
import { scrape } from "../support/scrape.ts";
import { useSharedSallyport } from "../support/shared-sallyport.ts";
import { until } from "../support/until.ts";

const part = useSharedSallyport();

/** Sets up a backend and a shadow backend that gets the copies. */
function mirrored<Shadow extends AsyncDisposable & { readonly url: string }>(
  startShadow: () => Promise<Shadow>,
  mirror: object = {},
  more: object = {},
) {
  const made = part(async (stack, name) => {
    const real = stack.use(await startEchoBackend());
    const shadow = stack.use(await startShadow());
    const upstream = `${name}-shadow`;
    return {
      real,
      shadow,
      upstream: { targets: [real.url] },
      upstreams: { [upstream]: { targets: [shadow.url], timeouts: { response: "1s" }, ...more } },
      route: { mirror: { upstream, ...mirror } },
    };
  });
  return () => {
    const { gate, name, path, real, shadow } = made();
    const upstream = `${name}-shadow`;
    const send = (question: Question = {}, query = "") =>
      ask(gate, path(`/orders${query}`), { token: gate.token, ...question });
    /** Waits until this many copies have ended with `result`, or with any result. */
    async function untilCopied(copies: number, result = ""): Promise<void> {
      const labels = [`upstream="${upstream}"`, `result="${result}`];
      const count = async (): Promise<number> =>
        (await scrape(gate)).sum("sallyport_mirrored_requests_total", ...labels);
      await until(async () => (await count()) === copies);
    }
    /** Posts a body without a length. @returns the status. */
    async function chunked(body: string): Promise<number> {
      const token = `Authorization: Bearer ${gate.token}`;
      const head = [`POST ${path("/orders")} HTTP/1.1`, "Host: localhost", token];
      const framed = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
      const bytes = request([...head, "Transfer-Encoding: chunked"]) + framed;
      return (await exchange(gate, bytes)).last.status;
    }
    return { gate, real, shadow, upstream, url: path("/orders"), send, untilCopied, chunked };
  };
}

/** Returns the header fields of the first request. */
const fieldsOf = ({ requests: [first] }: EchoBackend): string[] => [...(first?.rawHeaders ?? [])];

describe("the copy of a request", () => {
  const whole = mirrored(startEchoBackend);
  it("has the identity, path, query and body of the original", async () => {
    const { gate, real, shadow, url, send, untilCopied } = whole();
    const body = "x".repeat(40_000);
    const sent = { method: "POST", body, headers: { "x-own": "a" } };
    expect((await send(sent, "?a=1")).status).toBe(200);
    await untilCopied(1, "answered");
    const [[mine], [copy]] = [real.requests, shadow.requests];
    expect(copy).toMatchObject({
      method: "POST",
      url: `${url}?a=1`,
      bodySha256: mine?.bodySha256,
    });
    expect(fieldsOf(shadow)).toEqual(fieldsOf(real));
    expect(fieldsOf(shadow)).toContain("alice");
    expect(fieldsOf(shadow).join(" ")).not.toContain(gate.token);
  });

  const raw = mirrored(() => startRawBackend());
  it("has a Content-Length when the body was chunked", async () => {
    const { shadow, url, chunked } = raw();
    const inner = "GET /admin HTTP/1.1\r\nHost: x\r\n\r\n";
    expect(await chunked(inner)).toBe(200);
    await until(() => shadow.seen().length > 0);
    expect(shadow.seen()).toEqual([`POST ${url}`]);
    expect(shadow.requests()[0]?.body.toString()).toBe(inner);
  });

  const some = mirrored(startEchoBackend, { percent: 30 });
  it("is sent for only some requests, as percent says", async () => {
    const { real, shadow, send } = some();
    await Promise.all(Array.from({ length: 200 }, () => send()));
    await until(() => shadow.requests.length > 0);
    expect(real.requests).toHaveLength(200);
    // 60 are expected; the bounds are six standard deviations away, a chance of one in a billion.
    expect(shadow.requests.length).toBeGreaterThan(20);
    expect(shadow.requests.length).toBeLessThan(100);
  });

  const allowed = mirrored(startEchoBackend);
  it("is not sent for a refused request", async () => {
    const { gate, shadow, url, send, untilCopied } = allowed();
    expect((await ask(gate, url)).status).toBe(401);
    expect((await send()).status).toBe(200);
    await untilCopied(1, "answered");
    expect(shadow.requests).toHaveLength(1);
  });

  const small = mirrored(startEchoBackend, { bodyBytes: "32KiB" });
  it("is not sent when the body is too large", async () => {
    const { real, shadow, send, chunked, untilCopied } = small();
    const post = (body: string) => send({ method: "POST", body });
    await post("x".repeat(32 * 1024 + 1));
    expect(await chunked("x".repeat(100_000))).toBe(200);
    await post("x".repeat(32 * 1024));
    await untilCopied(2, "body_too_large");
    await untilCopied(1, "answered");
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
    const odd = mirrored(
      () => startRawBackend(script),
      {},
      { connections: 4, timeouts: { response: "400ms" } },
    );
    it(`if it ${what}`, async () => {
      const { gate, upstream, send, untilCopied } = odd();
      const body = "x".repeat(20_000);
      for (let i = 0; i < 20; i += 1) {
        const { status } = await send(i % 2 === 0 ? { method: "POST", body } : {});
        expect(status).toBe(200);
      }
      await untilCopied(20);
      const { body: log } = await ask({ port: gate.adminPort }, "/metrics");
      const inFlight = `sallyport_upstream_requests_in_flight{upstream="${upstream}"}`;
      expect(log.split("\n")).toContain(`${inFlight} 0`);
      expect(log).toMatch(/^sallyport_http_requests_in_flight 0$/m);
    });
  }

  const full = mirrored(() => startRawBackend(() => "hang"), {}, { connections: 2 });
  it("if it is down, or has no free connection", async () => {
    const { shadow, send, untilCopied } = full();
    const begun = Date.now();
    for (let i = 0; i < 10; i += 1) expect((await send()).status).toBe(200);
    await untilCopied(8, "no_connection");
    await untilCopied(2, "timeout");
    // Ten requests did not wait for the timeout of 1 s each.
    expect(Date.now() - begun).toBeLessThan(15_000);
    await shadow.close();
    expect((await send()).status).toBe(200);
    await untilCopied(1, "failed");
  });
});
