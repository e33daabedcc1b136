import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, askLogin, fieldsOf } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { logLine } from "../support/log-line.ts";
import { exchange, request } from "../support/raw-client.ts";
import { ALICE, startSallyport, type Sallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  gate = await startSallyport({ target: backend.url });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

const METRICS = [
  ...["http_requests_total", "http_request_duration_seconds", "http_requests_in_flight"],
  ...["auth_decisions_total", "token_cache_requests_total", "token_cache_entries"],
  ...["tokens_issued_total", "logins_total", "login_duration_seconds", "login_queue_length"],
  ...["requests_rejected_total", "upstream_requests_total", "upstream_response_duration_seconds"],
  ...["upstream_errors_total", "websocket_connections", "config_last_reload_successful"],
  ...[
    "config_last_reload_success_timestamp_seconds",
    "tls_certificate_not_after_timestamp_seconds",
  ],
  ...["build_info", "draining"],
];
const REASONS = {
  denied: [
    ...["missing", "malformed", "too_large", "multiple", "algorithm", "unknown_key", "signature"],
    ...["expired", "not_yet_valid", "issuer", "audience", "no_expiry", "revoked", "forbidden"],
  ],
  logins: [
    "success",
    "bad_credentials",
    "throttled",
    "queue_full",
    "unavailable",
    "malformed",
    "error",
  ],
  upstream: [
    ...["connect_refused", "connect_timeout", "response_timeout", "reset", "tls", "dns"],
    ...["aborted", "invalid_response", "resource_exhausted"],
  ],
};

describe("/metrics", () => {
  it("has every metric of the conventions", async () => {
    const { text } = await scrape(gate);
    const named = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name);
    expect(named).toEqual(expect.arrayContaining(METRICS.map((name) => `sallyport_${name}`)));
    expect(named).toContain("process_resident_memory_bytes");
    expect(named).toContain("nodejs_eventloop_lag_seconds");
  });

  it("shows every enumerated series at 0 from the start", async () => {
    await using fresh = await startSallyport({ target: backend.url });
    const page = await scrape(fresh);
    const zeros = [
      ...REASONS.denied.map((word) => `auth_decisions_total{result="denied",reason="${word}"}`),
      'auth_decisions_total{result="allowed",reason="ok"}',
      ...REASONS.logins.slice(1).map((word) => `logins_total{result="${word}"}`),
      ...REASONS.upstream.map((word) => `upstream_errors_total{upstream="app",reason="${word}"}`),
      'token_cache_requests_total{result="hit"}',
      'token_cache_requests_total{result="miss"}',
      'websocket_connections{route="everything"}',
      "draining",
      "http_requests_in_flight",
      "login_queue_length",
    ];
    const values = zeros.map((name) => [name, page.value(`sallyport_${name}`)]);
    expect(values).toEqual(zeros.map((name) => [name, 0]));
  });

  it("counts what happens", async () => {
    const before = await scrape(gate);
    await ask(gate, "/public/x");
    await ask(gate, "/orders");
    await ask(gate, "/orders", { token: gate.token });
    await ask(gate, "/orders/status/500", { token: gate.token });
    const after = await scrape(gate);
    const grown = (series: string): number =>
      (after.value(`sallyport_${series}`) ?? 0) - (before.value(`sallyport_${series}`) ?? 0);
    expect(grown('http_requests_total{route="public",method="GET",code="200"}')).toBe(1);
    expect(grown('http_requests_total{route="everything",method="GET",code="401"}')).toBe(1);
    expect(grown('http_requests_total{route="everything",method="GET",code="200"}')).toBe(1);
    expect(grown('http_requests_total{route="everything",method="GET",code="500"}')).toBe(1);
    expect(grown('http_request_duration_seconds_count{route="everything"}')).toBe(3);
    expect(grown('upstream_requests_total{upstream="app",code="200"}')).toBe(2);
    expect(grown('upstream_requests_total{upstream="app",code="500"}')).toBe(1);
    expect(grown('upstream_response_duration_seconds_count{upstream="app"}')).toBe(3);
    expect(grown('auth_decisions_total{result="denied",reason="missing"}')).toBe(1);
    expect(grown('auth_decisions_total{result="allowed",reason="ok"}')).toBe(2);
    expect(grown('auth_decisions_total{result="skipped",reason="ok"}')).toBe(1);
  });
});

describe("the admin listener", () => {
  it("serves health and metrics, and nothing else", async () => {
    const admin = { port: gate.adminPort };
    expect((await ask(admin, "/livez")).status).toBe(200);
    expect((await ask(admin, "/readyz")).status).toBe(200);
    const page = await ask(admin, "/metrics");
    expect(page.headers["content-type"]).toMatch(/^text\/plain; version=/);
    expect((await ask(admin, "/orders")).status).toBe(404);
    expect((await ask(admin, "/api/version", { token: gate.token })).status).toBe(404);
    expect((await ask(admin, "/metrics", { method: "POST" })).status).toBe(405);
  });

  it("cannot be reached through the main listener", async () => {
    for (const path of ["/metrics", "/livez", "/readyz"]) {
      expect((await ask(gate, path)).status).toBe(401);
      const { body } = await ask(gate, path, { token: gate.token });
      expect(fieldsOf({ body })["url"]).toBe(path);
    }
  });

  it("can be turned off", async () => {
    await using alone = await startSallyport({ target: backend.url, config: { admin: "off" } });
    expect((await ask(alone, "/public/x")).status).toBe(200);
    expect(alone.log().filter(({ msg }) => msg === "admin listening")).toEqual([]);
  });
});

describe("the log", () => {
  it("has one line per request, with the id of the envelope", async () => {
    const headers = { "x-request-id": "found-1", host: "api.example.com" };
    const refused = await ask(gate, "/orders/7?secret=1", { headers });
    const { time, duration_ms, ...line } = await logLine(gate, { id: fieldsOf(refused)["id"] });
    expect(line).toEqual({
      level: "info",
      msg: "request",
      id: fieldsOf(refused)["id"],
      request_id: "found-1",
      client: "127.0.0.1",
      method: "GET",
      host: "api.example.com",
      path: "/orders/7",
      route: "everything",
      status: 401,
      source: "self",
      auth: "denied",
      reason: "missing",
      bytes_in: 0,
      bytes_out: refused.body.length,
      protocol: "HTTP/1.1",
    });
    expect(Date.parse(String(time))).toBeGreaterThan(Date.now() - 60_000);
    expect(duration_ms).toBeGreaterThan(0);
  });

  it("has the target, size and duration of forwarded requests", async () => {
    const headers = { "x-request-id": "moved-1" };
    const question = { method: "POST", token: gate.token, body: "hello", headers };
    const { body } = await ask(gate, "/orders?x", question);
    const line = await logLine(gate, { request_id: "moved-1" });
    expect(line).toMatchObject({
      upstream: "app",
      target: backend.url,
      status: 200,
      source: "upstream",
      path: "/orders",
      auth: "allowed",
      reason: "ok",
      subject: "alice",
      bytes_in: 5,
      bytes_out: body.length,
      duration_ms: expect.any(Number),
      upstream_ms: expect.any(Number),
    });
  });

  it.each([
    ["a request that the parser refuses", "NONSENSE\r\n\r\n", 400],
    ["a header that is too large", request(["GET / HTTP/1.1", `X: ${"x".repeat(20_000)}`]), 431],
    ["two hosts", request(["GET / HTTP/1.1", "Host: a", "Host: b"]), 400],
  ])("has a line for %s, too", async (_name, bytes, status) => {
    const { last } = await exchange(gate, bytes, { responses: Infinity });
    expect(last.status).toBe(status);
    expect(await logLine(gate, { id: fieldsOf(last)["id"] })).toMatchObject({ status });
  });

  it("never contains a password, a token, a cookie or a query", async () => {
    const secrets = ["pass-s3cret", "query-s3cret", "cookie-s3cret", "body-s3cret"];
    await askLogin(gate, { username: "alice", password: "pass-s3cret" });
    const headers = { cookie: "a=cookie-s3cret", "x-request-id": "last-1" };
    const question = { method: "POST", token: gate.token, headers, body: "body-s3cret" };
    await ask(gate, "/orders?q=query-s3cret", question);
    await logLine(gate, { request_id: "last-1" });
    const all = JSON.stringify(gate.log()) + gate.stderr();
    for (const secret of [...secrets, ALICE.password, gate.token]) {
      expect(all).not.toContain(secret);
    }
    const key = await readFile(`${gate.directory}/tls.key`, "utf8");
    expect(all).not.toContain(key.split("\n")[1]);
  });
});
