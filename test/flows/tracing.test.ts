import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Log } from "../../src/core/log.ts";
import { openTracing } from "../../src/observe/tracing/tracing-settings.ts";
import { ask } from "../support/ask.ts";
import { type Collector, spansOf, startCollector } from "../support/collector.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { type Echoed, echoedBy } from "../support/echoed.ts";
import { logLine } from "../support/log-line.ts";
import { exchange, openSocket, request } from "../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";
import { openWebSocket, startWebSocketBackend } from "../support/websocket.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";
const SAMPLED = `00-${TRACE}-${PARENT}-01`;

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };

let backend: EchoBackend;
beforeAll(async () => {
  backend = await startEchoBackend();
});
afterAll(() => backend.close());

function start(collector: Pick<Collector, "url">, env: Record<string, string> = {}) {
  return startSallyport({
    target: backend.url,
    config: { upstreams: { gone: { targets: ["http://127.0.0.1:1"] } }, routes: ROUTES },
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "50", ...env },
  });
}

const ROUTES = [
  { name: "public", path: "/public/", auth: "none", upstream: "app" },
  { name: "gone", path: "/gone/", auth: "none", upstream: "gone" },
  { name: "everything", path: "/", upstream: "app" },
];

/** Sends a request with these headers. @returns what the backend received. */
async function echoed(gate: Sallyport, headers: Record<string, string>): Promise<Echoed> {
  return echoedBy(await ask(gate, "/public/x", { headers }));
}

async function traceIdOf(gate: Sallyport, fields: Record<string, unknown>): Promise<string> {
  return String((await logLine(gate, fields))["trace_id"]);
}

describe("with tracing on", () => {
  let collector: Collector;
  let gate: Sallyport;
  beforeAll(async () => {
    collector = await startCollector();
    gate = await start(collector, {
      OTEL_SERVICE_NAME: "orders-gate",
      OTEL_EXPORTER_OTLP_HEADERS: "x-api-key=geheim",
    });
  });
  afterAll(async () => {
    await gate.close();
    await collector[Symbol.asyncDispose]();
  });

  it("a client's trace gets two more spans, and the backend gets our span as its parent", async () => {
    const got = await echoed(gate, { traceparent: SAMPLED, tracestate: "a=1,b=2" });
    const [server, client] = await spansOf(collector, TRACE, 2);
    expect(server).toMatchObject({ parentSpanId: PARENT, service: "orders-gate" });
    expect(client?.parentSpanId).toBe(server?.spanId);
    expect(got.header("traceparent")).toBe(`00-${TRACE}-${client?.spanId}-01`);
    expect(got.header("tracestate")).toBe("a=1,b=2");
    expect(await traceIdOf(gate, { trace_id: TRACE })).toBe(TRACE);
    expect(server?.attributes).toMatchObject({ "http.request.method": "GET" });
    expect(server?.attributes["http.response.status_code"]).toBe(200);
    expect(client?.attributes["sallyport.target"]).toBe(backend.url);
    expect(collector.deliveries.at(-1)?.["x-api-key"]).toBe("geheim");
  });

  it("a request without a trace starts one", async () => {
    const got = await echoed(gate, { "x-request-id": "none-before" });
    const traceId = await traceIdOf(gate, { request_id: "none-before" });
    const [server, client] = await spansOf(collector, traceId, 2);
    expect(server?.parentSpanId).toBe("");
    expect(got.header("traceparent")).toBe(`00-${traceId}-${client?.spanId}-01`);
    expect(got.header("tracestate")).toBeUndefined();
  });

  it.each([
    ["malformed", ["traceparent: 00-abc-def-01"]],
    ["of zeros", [`traceparent: 00-${"0".repeat(32)}-${PARENT}-01`]],
    ["in upper case", [`traceparent: ${SAMPLED.toUpperCase()}`]],
    ["too long for its version", [`traceparent: ${SAMPLED}-more`]],
    ["of the invalid version ff", [`traceparent: ff${SAMPLED.slice(2)}`]],
    ["sent twice", [`traceparent: ${SAMPLED}`, `traceparent: ${SAMPLED}`]],
  ])(
    "a traceparent that is %s is ignored, and its tracestate is dropped",
    async (name, headers) => {
      const id = `ignored-${name.replaceAll(" ", "-")}`;
      const all = ["Host: localhost", `X-Request-Id: ${id}`, "tracestate: a=1", ...headers];
      const { last } = await exchange(gate, request(["GET /public/x HTTP/1.1", ...all]));
      expect(last.status).toBe(200);
      const traceId = await traceIdOf(gate, { request_id: id });
      expect(traceId).toMatch(/^[0-9a-f]{32}$/);
      expect(traceId).not.toBe(TRACE);
      expect(last.body).not.toContain("tracestate");
      expect(last.body).not.toContain(TRACE);
      expect(last.body).toContain(`00-${traceId}-`);
    },
  );

  it("an unsampled trace continues unsampled, without a span", async () => {
    const quiet = "11111111111111111111111111111111";
    const got = await echoed(gate, { traceparent: `00-${quiet}-${PARENT}-00` });
    expect(got.header("traceparent")).toMatch(new RegExp(`^00-${quiet}-[0-9a-f]{16}-00$`));
    expect(got.header("traceparent")).not.toContain(PARENT);
    await ask(gate, "/public/later", { headers: { "x-request-id": "later" } });
    await spansOf(collector, await traceIdOf(gate, { request_id: "later" }), 2);
    expect(collector.spans.some(({ traceId }) => traceId === quiet)).toBe(false);
  });

  it.each([
    ["a refusal", "/secret?token=not-in-a-span", { status: 401, reason: "missing" }, 0],
    ["no backend", "/gone/x", { status: 502, reason: "connect_refused" }, 2],
    ["an ambiguous request", "/public/%2e%2e/x", { status: 400, reason: "bad_request" }, 0],
  ])("%s ends its span with the reason", async (name, path, expected, errors) => {
    const id = name.replaceAll(" ", "-");
    const traceId = id.length.toString(16).padStart(32, "a");
    const traceparent = `00-${traceId}-${PARENT}-01`;
    await ask(gate, path, { headers: { "x-request-id": id, traceparent } });
    const [server, client] = await spansOf(collector, traceId, errors === 2 ? 2 : 1);
    expect(server?.attributes["http.response.status_code"]).toBe(expected.status);
    expect(server?.status).toBe(errors);
    if (errors === 2) {
      expect(client?.attributes["error.type"]).toBe(expected.reason);
      expect(client?.status).toBe(2);
    }
    expect(JSON.stringify([server, client])).not.toContain("not-in-a-span");
  });

  it("a client that disconnects and a backend that aborts end their spans", async () => {
    const broken = "22222222222222222222222222222222";
    const left = "33333333333333333333333333333333";
    const headersFor = (id: string) => ({ traceparent: `00-${id}-${PARENT}-01` });
    await ask(gate, "/public/die-mid-body", { headers: headersFor(broken) }).catch(() => undefined);
    await spansOf(collector, broken, 2);
    const hanging = fetchAndLeave(gate, headersFor(left));
    await hanging;
    const [server] = await spansOf(collector, left, 2);
    expect(server?.attributes["http.response.status_code"]).toBe(499);
  });

  it("a trace is shown in exemplars only when OpenMetrics is requested", async () => {
    await ask(gate, "/public/x", { headers: { "x-request-id": "shown" } });
    const traceId = await traceIdOf(gate, { request_id: "shown" });
    const page = { port: gate.adminPort };
    const plain = await ask(page, "/metrics");
    expect(plain.headers["content-type"]).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(plain.body).not.toContain(traceId);
    const accept = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.5";
    const open = await ask(page, "/metrics", { headers: { accept } });
    expect(open.headers["content-type"]).toMatch(/^application\/openmetrics-text; version=1\.0\.0/);
    const shown = new RegExp(
      `^sallyport_http_request_duration_seconds_bucket\\{le="[0-9.]+",route="public"\\} \\d+ # ` +
        `\\{trace_id="${traceId}"\\} [0-9.e-]+ \\d+\\.\\d{3}$`,
      "m",
    );
    expect(open.body).toMatch(shown);
    expect(open.body).toMatch(/^# TYPE sallyport_http_requests counter$/m);
    expect(open.body).toMatch(/^sallyport_http_requests_total\{/m);
    expect(open.body).not.toContain("\n\n");
    expect(open.body.endsWith("\n# EOF\n")).toBe(true);
  });

  it("a span never contains a query, a header or the caller's identity", async () => {
    await ask(gate, "/orders?secret=query", {
      token: gate.token,
      headers: { cookie: "a=biscuit" },
    });
    await until(() =>
      collector.spans.some(({ attributes }) => attributes["url.path"] === "/orders"),
    );
    const text = JSON.stringify(collector.spans);
    for (const word of ["secret=query", "biscuit", "alice", gate.token, "geheim"]) {
      expect(text).not.toContain(word);
    }
  });
});

/** Sends a request that is never answered, and closes the connection once the backend has it. */
async function fetchAndLeave(gate: Sallyport, headers: Record<string, string>): Promise<void> {
  const before = backend.requests.length;
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const text = request(["GET /public/hang HTTP/1.1", "Host: localhost", ...lines]);
  const socket = await openSocket(gate);
  socket.write(text);
  await until(() => backend.requests.length > before);
  socket.destroy();
}

describe("WebSockets", () => {
  it("carry the trace in their handshake, and end their spans when they close", async () => {
    await using collector = await startCollector();
    await using talkers = await startWebSocketBackend();
    await using gate = await startSallyport({
      withoutToken: true,
      target: talkers.url,
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "50" },
    });
    const socket = await openWebSocket(gate, "/public/talk", { traceparent: SAMPLED });
    socket.close();
    await socket.closed;
    const [server, client] = await spansOf(collector, TRACE, 2);
    expect(server?.attributes["http.response.status_code"]).toBe(101);
    const sent = talkers.upgrades[0]?.rawHeaders.join("\n");
    expect(sent).toContain(`00-${TRACE}-${client?.spanId}-01`);
    expect(sent).not.toContain(PARENT);
  });
});

describe("with tracing off", () => {
  it("the headers pass unchanged, and nothing is exported", async () => {
    await using collector = await startCollector();
    await using gate = await start(collector, { OTEL_SDK_DISABLED: "true" });
    const got = await echoed(gate, { traceparent: "anything", tracestate: "a=1" });
    expect(got.header("traceparent")).toBe("anything");
    expect(got.header("tracestate")).toBe("a=1");
    const line = await logLine(gate, { msg: "request", route: "public" });
    expect(line).not.toHaveProperty("trace_id");
    expect(await gate.stop()).toBe(0);
    expect(collector.deliveries).toEqual([]);
  });

  it.each([
    {},
    { OTEL_EXPORTER_OTLP_ENDPOINT: "" },
    { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1", OTEL_SDK_DISABLED: "TRUE" },
    { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1", OTEL_TRACES_EXPORTER: "none" },
  ])("is off with %j", async (env) => {
    expect(await openTracing({ env, version: "1.0.0", log: silent })).toBeUndefined();
  });
});
