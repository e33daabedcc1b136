import { AggregatorRegistry } from "prom-client";
import { expect, test } from "vitest";
import { createMetrics, type Metrics } from "../../src/observe/metrics/metrics.ts";
import { outcomeWith } from "./outcomes.ts";

const START_MS = 1_800_000_000_000;

function metrics(): Metrics {
  return createMetrics({
    routes: ["orders", "docs"],
    upstreams: ["app", "billing"],
    version: "1.2.3",
    clock: { now: () => START_MS, monotonic: () => 0 },
  });
}

/** Parses the exposition to values by series. */
async function series(from: Metrics): Promise<Map<string, number>> {
  return parse(await from.text());
}

function parse(text: string): Map<string, number> {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const space = line.lastIndexOf(" ");
      return [line.slice(0, space), Number(line.slice(space + 1))];
    }),
  );
}

test("a method in use is exported with 5xx codes at 0", async () => {
  const some = metrics();
  const put = (code: number): string =>
    `sallyport_http_requests_total{route="orders",method="PUT",code="${code}"}`;
  expect((await series(some)).has(put(502))).toBe(false);
  some.requestStarted();
  some.requestFinished(outcomeWith({ route: "orders", method: "PUT", status: 200 }));
  const shown = await series(some);
  expect([200, 500, 502, 503, 504].map((code) => shown.get(put(code)))).toEqual([1, 0, 0, 0, 0]);
});

test("series that are known in advance exist at 0 from the start", async () => {
  const shown = await series(metrics());
  const expected = [
    'sallyport_auth_decisions_total{result="denied",reason="signature"}',
    'sallyport_auth_decisions_total{result="allowed",reason="ok"}',
    'sallyport_auth_decisions_total{result="skipped",reason="ok"}',
    'sallyport_token_cache_requests_total{result="miss"}',
    "sallyport_token_cache_entries",
    "sallyport_tokens_issued_total",
    'sallyport_logins_total{result="queue_full"}',
    "sallyport_login_duration_seconds_count",
    "sallyport_login_queue_length",
    'sallyport_requests_rejected_total{reason="tls_handshake"}',
    'sallyport_requests_rejected_total{reason="keys_unusable"}',
    'sallyport_connections_postponed_total{kind="read"}',
    ...[500, 502, 503, 504].flatMap((code) => [
      `sallyport_http_requests_total{route="orders",method="GET",code="${code}"}`,
      `sallyport_http_requests_total{route="none",method="POST",code="${code}"}`,
      `sallyport_upstream_requests_total{upstream="app",code="${code}"}`,
    ]),
    'sallyport_upstream_errors_total{upstream="billing",reason="dns"}',
    'sallyport_upstream_response_duration_seconds_bucket{le="+Inf",upstream="app"}',
    'sallyport_http_request_duration_seconds_bucket{le="0.0025",route="docs"}',
    'sallyport_http_request_duration_seconds_sum{route="none"}',
    'sallyport_http_request_duration_seconds_count{route="authenticate"}',
    'sallyport_http_request_duration_seconds_count{route="version"}',
    'sallyport_websocket_connections{route="orders"}',
    "sallyport_http_requests_in_flight",
    "sallyport_log_lines_dropped_total",
    "sallyport_draining",
  ];
  expect(expected.map((name) => [name, shown.get(name)])).toEqual(
    expected.map((name) => [name, 0]),
  );
});

test("every metric has a help text, and only counters end in _total", async () => {
  const text = await metrics().text();
  const kinds = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  expect(kinds.length).toBeGreaterThan(30);
  for (const [, name = "", kind] of kinds) {
    expect(text).toMatch(new RegExp(`^# HELP ${name} \\S`, "m"));
    expect([name, name.endsWith("_total")]).toEqual([name, kind === "counter"]);
  }
});

test("a request is counted by route, method and code, and its duration in every bucket above", async () => {
  const counted = metrics();
  counted.requestStarted();
  counted.requestStarted();
  counted.requestFinished(outcomeWith({ durationMs: 2.5 }));
  const shown = await series(counted);
  const duration = "sallyport_http_request_duration_seconds";
  expect(shown.get('sallyport_http_requests_total{route="orders",method="GET",code="200"}')).toBe(
    1,
  );
  expect(shown.get("sallyport_http_requests_in_flight")).toBe(1);
  expect(shown.get(`${duration}_bucket{le="0.001",route="orders"}`)).toBe(0);
  expect(shown.get(`${duration}_bucket{le="0.0025",route="orders"}`)).toBe(1);
  expect(shown.get(`${duration}_bucket{le="+Inf",route="orders"}`)).toBe(1);
  expect(shown.get(`${duration}_sum{route="orders"}`)).toBeCloseTo(0.0025);
});

test("a duration above the last bound is counted only in +Inf", async () => {
  const counted = metrics();
  counted.loginFinished("success", 11);
  const shown = await series(counted);
  expect(shown.get('sallyport_login_duration_seconds_bucket{le="10"}')).toBe(0);
  expect(shown.get('sallyport_login_duration_seconds_bucket{le="+Inf"}')).toBe(1);
  expect(shown.get("sallyport_login_duration_seconds_count")).toBe(1);
});

test("the lifetime of a WebSocket does not count as request duration", async () => {
  const counted = metrics();
  counted.requestFinished(
    outcomeWith({ status: 101, protocol: "websocket", durationMs: 3_600_000 }),
  );
  const shown = await series(counted);
  expect(shown.get('sallyport_http_requests_total{route="orders",method="GET",code="101"}')).toBe(
    1,
  );
  expect(shown.get('sallyport_http_request_duration_seconds_count{route="orders"}')).toBe(0);
});

test("decisions, logins, tokens, rejections, backends and WebSockets are counted", async () => {
  const counted = metrics();
  counted.authDecided("allowed", "ok");
  counted.authDecided("skipped", "ok");
  counted.authDecided("denied", "expired");
  counted.tokenCache("hit");
  counted.tokenCache("miss");
  counted.tokenCache("miss");
  counted.tokenIssued();
  counted.loginFinished("throttled", 0);
  counted.requestRefused("bad_request");
  counted.connectionsPostponed("read", 3);
  counted.connectionsPostponed("accept", 2);
  counted.upstreamAnswered("app", 503, 0.2);
  counted.upstreamFailed("billing", "connect_timeout");
  counted.webSocketOpened("docs");
  counted.webSocketOpened("docs");
  counted.webSocketClosed("docs");
  const expected = {
    'auth_decisions_total{result="allowed",reason="ok"}': 1,
    'auth_decisions_total{result="skipped",reason="ok"}': 1,
    'auth_decisions_total{result="denied",reason="expired"}': 1,
    'auth_decisions_total{result="denied",reason="missing"}': 0,
    'token_cache_requests_total{result="hit"}': 1,
    'token_cache_requests_total{result="miss"}': 2,
    tokens_issued_total: 1,
    'logins_total{result="throttled"}': 1,
    'requests_rejected_total{reason="bad_request"}': 1,
    'connections_postponed_total{kind="read"}': 3,
    'connections_postponed_total{kind="accept"}': 2,
    'upstream_requests_total{upstream="app",code="503"}': 1,
    'upstream_response_duration_seconds_count{upstream="app"}': 1,
    'upstream_errors_total{upstream="billing",reason="connect_timeout"}': 1,
    'upstream_errors_total{upstream="app",reason="connect_timeout"}': 0,
    'websocket_connections{route="docs"}': 1,
  };
  const shown = await series(counted);
  for (const [name, count] of Object.entries(expected)) {
    expect([name, shown.get(`sallyport_${name}`)]).toEqual([name, count]);
  }
});

test("gauges are read on each scrape", async () => {
  const counted = metrics();
  let entries = 1;
  counted.gauges.tokenCacheEntries = () => entries;
  counted.gauges.loginQueueLength = () => 4;
  counted.gauges.draining = () => true;
  entries = 7;
  const shown = await series(counted);
  expect(shown.get("sallyport_token_cache_entries")).toBe(7);
  expect(shown.get("sallyport_login_queue_length")).toBe(4);
  expect(shown.get("sallyport_draining")).toBe(1);
  const build = `sallyport_build_info{version="1.2.3",node="${process.versions.node}"}`;
  expect(shown.get(build)).toBe(1);
});

test("a failed reload does not change the time of the last successful one", async () => {
  const counted = metrics();
  const successful = "sallyport_config_last_reload_successful";
  const time = "sallyport_config_last_reload_success_timestamp_seconds";
  const start = await series(counted);
  expect([start.get(successful), start.get(time)]).toEqual([1, START_MS / 1000]);
  counted.configReloaded(false, START_MS + 5000);
  const failed = await series(counted);
  expect([failed.get(successful), failed.get(time)]).toEqual([0, START_MS / 1000]);
  counted.configReloaded(true, START_MS + 9000);
  const mended = await series(counted);
  expect([mended.get(successful), mended.get(time)]).toEqual([1, START_MS / 1000 + 9]);
});

test("the certificates' ends are exported once they are known, that of the first without a label", async () => {
  const counted = metrics();
  const name = "sallyport_tls_certificate_not_after_timestamp_seconds";
  expect([...(await series(counted)).keys()].filter((each) => each.startsWith(name))).toEqual([]);
  const of = "tls_certificate";
  counted.gauges.certificateEnds = () => [
    { of, notAfter: 1_950_000_000 },
    { of, name: "shop.example", notAfter: 1_960_000_000 },
  ];
  const known = await series(counted);
  expect(known.get(name)).toBe(1_950_000_000);
  expect(known.get(`${name}{name="shop.example"}`)).toBe(1_960_000_000);
});

test("10,000 random requests add series only for routes, methods and codes", async () => {
  const counted = metrics();
  const before = await series(counted);
  for (let i = 0; i < 10_000; i++) {
    const noise = `x${i}`;
    counted.requestStarted();
    counted.requestFinished(
      outcomeWith({
        route: i % 3 === 0 ? "orders" : noise,
        method: i % 2 === 0 ? "GET" : noise,
        path: `/${noise}`,
        host: noise,
        client: noise,
        subject: noise,
        upstream: noise,
        status: i % 5 === 0 ? i : 200,
      }),
    );
    counted.upstreamAnswered(noise, 200, 0.1);
    counted.upstreamFailed(noise, "reset");
    counted.webSocketOpened(noise);
  }
  const after = await series(counted);
  const added = [...after.keys()].filter(
    (name) => name.startsWith("sallyport_") && !before.has(name),
  );
  expect(added.length).toBeGreaterThan(0);
  const allowed =
    /^sallyport_http_requests_total\{route="(?:orders|none)",method="(?:GET|other)",code="(?:[1-5]\d\d|other)"\}$/;
  expect(added.filter((name) => !allowed.test(name))).toEqual([]);
  expect(after.get('sallyport_websocket_connections{route="none"}')).toBe(10_000);
});

test("the counts of several threads are summed", async () => {
  const [first, second] = [metrics(), metrics()];
  for (const thread of [first, second]) {
    thread.requestFinished(outcomeWith());
    thread.loginFinished("success", 0.04);
  }
  first.configReloaded(false, START_MS);
  const both = AggregatorRegistry.aggregate([await first.json(), await second.json()]);
  const shown = parse(await both.metrics());
  const count = "sallyport_http_request_duration_seconds_count";
  expect(shown.get('sallyport_http_requests_total{route="orders",method="GET",code="200"}')).toBe(
    2,
  );
  expect(shown.get(`${count}{route="orders"}`)).toBe(2);
  expect(shown.get('sallyport_login_duration_seconds_bucket{le="0.05"}')).toBe(2);
  expect(shown.get("sallyport_config_last_reload_successful")).toBe(0);
});
