import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, fieldsOf, type Answer } from "../support/ask.ts";
import { expectEnvelope, expectRefusal } from "../support/envelope.ts";
import { startRawBackend, type RawBackend } from "../support/raw-backend.ts";
import { logLine } from "../support/log-line.ts";
import { chunked, exchange, request } from "../support/raw-client.ts";
import { ALICE, cheapHash, startSallyport, type Sallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

const open = { auth: "none", upstream: "app" };
const ROUTES = [
  { ...open, name: "public", path: "/public/" },
  { ...open, name: "upload", path: "/upload", limits: { bodyBytes: "8KiB" } },
  {
    name: "by-subject",
    path: "/by-subject",
    upstream: "app",
    rateLimit: { requests: 2, within: "1m" },
  },
  { ...open, name: "by-address", path: "/by-address", rateLimit: { requests: 2, within: "1m" } },
  { ...open, name: "bursts", path: "/bursts", rateLimit: { requests: 1, within: "1m", burst: 3 } },
  {
    name: "guarded",
    path: "/guarded",
    upstream: "app",
    rateLimit: { requests: 2, within: "1m", by: "address" },
  },
];

let backend: RawBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startRawBackend();
  gate = await startSallyport({
    target: backend.url,
    files: {
      "users.yaml": JSON.stringify({
        users: {
          alice: { password: cheapHash(ALICE.password) },
          bob: { password: cheapHash("bob's own") },
        },
      }),
    },
    config: {
      server: { trustedProxies: ["127.0.0.1"], limits: { headers: 12, bodyBytes: "1KiB" } },
      routes: ROUTES,
    },
  });
});
afterAll(async () => {
  await gate.close();
  await backend[Symbol.asyncDispose]();
});

const rejected = async (reason: string): Promise<number> =>
  (await scrape(gate)).value(`sallyport_requests_rejected_total{reason="${reason}"}`) ?? -1;

describe("header fields", () => {
  const get = (fields: number): string =>
    request([
      "GET /public/x HTTP/1.1",
      "Host: localhost",
      ...Array.from({ length: fields - 1 }, (_none, index) => `x-${index}: a`),
    ]);

  it("may be as many as configured, not one more", async () => {
    expect((await exchange(gate, get(12))).last.status).toBe(200);
    expectRefusal(await exchange(gate, get(13), { responses: Infinity }), 431);
  });
});

describe("the size of a body", () => {
  const send = (path: string, bytes: number): Promise<Answer> =>
    ask(gate, path, {
      method: "POST",
      body: "x".repeat(bytes),
      headers: { expect: "100-continue" },
    });
  const sendChunked = (path: string, bytes: number) =>
    exchange(
      gate,
      request(
        [`POST ${path} HTTP/1.1`, "Host: localhost", "Transfer-Encoding: chunked"],
        chunked("x".repeat(bytes)),
      ),
    );

  it("is limited on every route, by its length and while it streams", async () => {
    expect((await send("/public/x", 1024)).status).toBe(200);
    expect((await send("/public/x", 1025)).status).toBe(413);
    expect((await sendChunked("/public/x", 1024)).last.status).toBe(200);
    expect((await sendChunked("/public/x", 1025)).last.status).toBe(413);
  });

  it("is limited by its route when that sets a limit", async () => {
    expect((await send("/upload", 8192)).status).toBe(200);
    expect((await send("/upload", 8193)).status).toBe(413);
    expect((await sendChunked("/upload", 8192)).last.status).toBe(200);
    expect((await sendChunked("/upload", 8193)).last.status).toBe(413);
  });
});

describe("requests of one caller", () => {
  const from = (client: string, path: string): Promise<Answer> =>
    ask(gate, path, { headers: { "x-forwarded-for": client } });

  it("by subject: excess requests get 429 with any token of the subject; others do not", async () => {
    const before = await rejected("rate_limited");
    const another = await gate.login(ALICE.username, ALICE.password);
    const first = await ask(gate, "/by-subject", { token: gate.token });
    expect(first.status).toBe(200);
    expect(first.headers).toMatchObject({
      "ratelimit-policy": '"by-subject";q=2;w=60',
      ratelimit: '"by-subject";r=1;t=30',
    });
    const last = (await ask(gate, "/by-subject", { token: another })).headers["ratelimit"];
    // A second may pass between the two requests.
    expect(last).toMatch(/^"by-subject";r=0;t=(?:60|5\d)$/);
    const refused = await ask(gate, "/by-subject", { token: gate.token });
    expect(refused.status).toBe(429);
    expect(fieldsOf(refused)).toEqual({
      id: expect.toSatisfy(Number.isSafeInteger),
      message: "Too many requests, try again later",
      success: false,
    });
    const wait = Number(refused.headers["retry-after"]);
    expect(wait).toBeGreaterThan(20);
    expect(wait).toBeLessThanOrEqual(30);
    expect(refused.headers["ratelimit"]).toBe(`"by-subject";r=0;t=${wait}`);
    const bob = await gate.login("bob", "bob's own");
    expect((await ask(gate, "/by-subject", { token: bob })).status).toBe(200);
    expect(await rejected("rate_limited")).toBe(before + 1);
    const line = await logLine(gate, { id: fieldsOf(refused)["id"] });
    expect(line).toMatchObject({ reason: "rate_limited", subject: "alice", auth: "allowed" });
  });

  it("by subject: upgrades count as well", async () => {
    const token = await gate.login(ALICE.username, ALICE.password);
    const upgrade = request([
      ...["GET /by-subject/ws HTTP/1.1", "Host: localhost", `Authorization: Bearer ${token}`],
      ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
      "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    ]);
    let status = 0;
    await until(async () => {
      status = (await exchange(gate, upgrade)).last.status;
      return status === 429;
    });
    expectEnvelope((await exchange(gate, upgrade)).last, 429);
  });

  it("by address: the client's address behind a trusted proxy, and the /64 of IPv6", async () => {
    expect((await from("203.0.113.1", "/by-address")).status).toBe(200);
    expect((await from("203.0.113.1", "/by-address")).status).toBe(200);
    expect((await from("203.0.113.1", "/by-address")).status).toBe(429);
    expect((await from("203.0.113.2", "/by-address")).status).toBe(200);
    expect((await from("2001:db8:1:2::1", "/by-address")).status).toBe(200);
    expect((await from("2001:db8:1:2:ffff::9", "/by-address")).status).toBe(200);
    expect((await from("2001:db8:1:2:3::5", "/by-address")).status).toBe(429);
    expect((await from("2001:db8:1:3::1", "/by-address")).status).toBe(200);
  });

  it("by address: invalid tokens count, and are refused before the token is checked", async () => {
    const guess = (): Promise<Answer> =>
      ask(gate, "/guarded", { token: "x.y.z", headers: { "x-forwarded-for": "203.0.113.9" } });
    expect([(await guess()).status, (await guess()).status]).toEqual([401, 401]);
    const decided = (await scrape(gate)).sum("sallyport_auth_decisions_total");
    expect((await guess()).status).toBe(429);
    expect((await scrape(gate)).sum("sallyport_auth_decisions_total")).toBe(decided);
  });

  it("may come in a burst when the route allows it", async () => {
    const statuses: number[] = [];
    for (let i = 0; i < 4; i += 1) statuses.push((await from("203.0.113.3", "/bursts")).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
  });

  it("get no RateLimit fields on a route without a limit", async () => {
    const { headers } = await ask(gate, "/public/x");
    expect(Object.keys(headers).filter((name) => name.startsWith("ratelimit"))).toEqual([]);
  });
});
