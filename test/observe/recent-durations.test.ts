import fc from "fast-check";
import { expect, it } from "vitest";
import { mergeEvents, quantileOf, RecentLog } from "../../src/observe/recent/recent-log.ts";
import { outcomeWith } from "./outcomes.ts";

/** Creates a log whose clock the test sets. */
function recentLog() {
  let now = 0;
  const log = new RecentLog(() => now);
  return {
    events: () => log.events(),
    at: (seconds: number) => void (now = seconds * 1_000),
    took: (ms: number) => log.requestFinished(outcomeWith({ route: "a", durationMs: ms }), now),
    counts: () => log.events().durations.routes.get("a") ?? [],
  };
}

it("knows each quantile within 10 %, whatever the durations", () => {
  const durations = fc.array(fc.double({ min: 0.3, max: 1e6, noNaN: true }), { minLength: 1 });
  fc.assert(
    fc.property(durations, fc.constantFrom(0.5, 0.9, 0.99), (all, part) => {
      const recent = recentLog();
      for (const ms of all) recent.took(ms);
      const exact = all.toSorted((a, b) => a - b)[Math.ceil(all.length * part) - 1] ?? 0;
      const found = quantileOf(recent.counts(), part) ?? 0;
      expect(Math.abs(found / exact - 1)).toBeLessThan(0.1);
    }),
  );
});

it("forgets what is older than four minutes, and takes any duration", () => {
  const recent = recentLog();
  for (const ms of [-1, 0, 1e12, Number.NaN]) recent.took(ms);
  const count = (seconds: number) => {
    recent.at(seconds);
    return recent.counts().reduce((sum, each) => sum + each, 0);
  };
  expect(count(119)).toBe(4);
  recent.at(130);
  recent.took(1);
  expect(count(140)).toBe(5);
  expect(count(260)).toBe(1);
  expect(count(900)).toBe(0);
  expect(quantileOf(recent.counts(), 0.5)).toBeUndefined();
});

it("forgets as well after the clock was set back", () => {
  const recent = recentLog();
  recent.at(100_000);
  recent.took(1);
  for (const second of [50_000, 50_130, 50_260]) {
    recent.at(second);
    recent.took(1);
  }
  expect(recent.counts().reduce((sum, each) => sum + each, 0)).toBe(2);
});

it("adds up what several threads have counted, and leaves WebSockets out of the routes", () => {
  const [one, other] = [recentLog(), recentLog()];
  one.took(10);
  other.took(1_000);
  other.took(1_000);
  const { routes } = mergeEvents([one.events(), other.events()]).durations;
  expect(quantileOf(routes.get("a") ?? [], 0.3)).toBeCloseTo(10, -1);
  expect(quantileOf(routes.get("a") ?? [], 0.5)).toBeCloseTo(1_000, -2);
  const log = new RecentLog(() => 0);
  log.requestFinished(outcomeWith({ route: "a", durationMs: 9, protocol: "websocket" }), 0);
  expect(log.events().durations.routes.size).toBe(0);
});

it("keeps the durations of a thousand targets, whatever their addresses become", () => {
  const log = new RecentLog(() => 0);
  for (let i = 0; i < 1_500; i += 1) {
    const target = `http://10.0.${i >> 8}.${i & 255}:80`;
    log.requestFinished(outcomeWith({ upstream: "app", target, upstreamMs: 1 }), 0);
  }
  const { targets } = log.events().durations;
  expect(targets.size).toBe(1_000);
  expect(targets.has("app http://10.0.5.219:80")).toBe(true);
  // Reloads may rename upstreams.
  for (let i = 0; i < 2_500; i += 1) {
    const outcome = outcomeWith({
      upstream: `app-${i}`,
      target: "http://10.0.0.1:80",
      upstreamMs: 1,
    });
    log.requestFinished(outcome, 0);
  }
  expect(log.events().durations.targets.size).toBe(1_000);
});
