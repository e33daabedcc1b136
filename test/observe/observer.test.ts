import { expect, test, vi } from "vitest";
import type { Log } from "../../src/core/log.ts";
import { createMetrics } from "../../src/observe/metrics/metrics.ts";
import { createObserver } from "../../src/observe/log/access-log.ts";
import { RecentLog } from "../../src/observe/recent/recent-log.ts";
import { keptLines } from "./kept-lines.ts";
import { outcomeWith } from "./outcomes.ts";

const clock = { now: () => 0, monotonic: () => 0 };

function observed(level: keyof Log, access: "all" | "errors" | "none" = "all") {
  const metrics = createMetrics({ routes: ["orders"], upstreams: [], version: "1.0.0" });
  const { sink, lines } = keptLines();
  const recent = new RecentLog(clock.now);
  return {
    metrics,
    lines,
    observer: createObserver({ metrics, recent, sink, clock, level, access }),
  };
}

test("a finished request is one line and one count", async () => {
  const { observer, metrics, lines } = observed("info");
  observer.requestStarted();
  observer.requestFinished(outcomeWith());
  observer.authDecided("denied", "revoked");
  expect(lines.map((line): unknown => JSON.parse(line))).toMatchObject([{ id: 3_700_000_000_001 }]);
  const text = await metrics.text();
  expect(text).toContain('http_requests_total{route="orders",method="GET",code="200"} 1');
  expect(text).toContain('auth_decisions_total{result="denied",reason="revoked"} 1');
  expect(text).toContain("sallyport_http_requests_in_flight 0");
});

test.each([
  ["debug", [200, 503]],
  ["info", [200, 503]],
  ["warn", [503]],
  ["error", []],
] as const)("at level %s the answers %j are logged, and all are counted", async (level, logged) => {
  const { observer, metrics, lines } = observed(level);
  observer.requestFinished(outcomeWith({ status: 200 }));
  observer.requestFinished(outcomeWith({ status: 503, source: "self" }));
  const statuses = lines.map((line) => (JSON.parse(line) as { status: number }).status);
  expect(statuses).toEqual(logged);
  expect(await metrics.text()).toContain('request_duration_seconds_count{route="orders"} 2');
});

test.each([
  ["all", 2],
  ["errors", 1],
  ["none", 0],
] as const)("access: %s writes %i of two lines, and counts both", (access, expected) => {
  const { observer, metrics, lines } = observed("info", access);
  const finished = vi.spyOn(metrics, "requestFinished");
  for (const status of [200, 404]) observer.requestFinished(outcomeWith({ status }));
  expect(lines).toHaveLength(expected);
  expect(finished).toHaveBeenCalledTimes(2);
});
