import { expect, it } from "vitest";
import {
  mergeEvents,
  RECENT_MINUTES,
  RECENT_REFUSALS,
  RecentLog,
} from "../../src/observe/recent/recent-log.ts";
import { outcomeWith } from "./outcomes.ts";

const MINUTE_MS = 60_000;
const START = Date.UTC(2026, 10, 22, 10, 0, 30);

function recentLog() {
  let now = START;
  const recent = new RecentLog(() => now);
  const advance = (ms: number): void => void (now += ms);
  return { recent, advance };
}

const refused = outcomeWith({ status: 401, source: "self", reason: "expired" });

it("counts logins and refusals by minute", () => {
  const { recent, advance } = recentLog();
  recent.loginFinished("success");
  recent.requestFailed(refused);
  advance(2 * MINUTE_MS);
  recent.requestFailed(refused);
  recent.requestFailed({ ...refused, reason: "missing" });
  const { minutes } = recent.events();
  expect(minutes).toHaveLength(RECENT_MINUTES);
  expect(minutes.slice(-3)).toEqual([
    { at: START - 30_000, logins: { success: 1 }, refusals: { expired: 1 } },
    { at: START + 30_000, logins: {}, refusals: {} },
    { at: START + 90_000, logins: {}, refusals: { expired: 1, missing: 1 } },
  ]);
});

it("forgets old minutes, including those an hour ago in the same slot", () => {
  const { recent, advance } = recentLog();
  recent.requestFailed(refused);
  advance(RECENT_MINUTES * MINUTE_MS);
  expect(recent.events().minutes.map(({ refusals }) => refusals)).toEqual(
    Array.from({ length: RECENT_MINUTES }, () => ({})),
  );
  recent.requestFailed(refused);
  expect(recent.events().minutes.at(-1)?.refusals).toEqual({ expired: 1 });
});

it("keeps only the last refusals, newest first", () => {
  const { recent, advance } = recentLog();
  for (let id = 1; id <= 3 * RECENT_REFUSALS; id += 1) {
    recent.requestFailed({ ...refused, id });
    advance(1);
  }
  const ids = recent.events().refusals.map(({ id }) => id);
  expect(ids).toEqual(Array.from({ length: RECENT_REFUSALS }, (_, index) => 150 - index));
});

it("counts refused connections, and no request twice", () => {
  const { recent } = recentLog();
  for (const reason of ["tls_handshake", "connections", "bad_request", "rate_limited"] as const) {
    recent.requestRefused(reason);
  }
  recent.requestFailed({ ...refused, status: 499, reason: "aborted" });
  const { minutes, refusals } = recent.events();
  expect(minutes.at(-1)?.refusals).toEqual({ tls_handshake: 1, connections: 1 });
  expect(refusals).toEqual([]);
});

it("truncates long texts, and stores no token", () => {
  const { recent, advance } = recentLog();
  const long = "x".repeat(16_000);
  recent.requestFailed({ ...refused, path: `/${long}`, host: long, method: long, subject: long });
  advance(1);
  recent.requestFailed({ ...refused, path: "/t/eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ6b2UifQ.c2ln" });
  const [token, shortened] = recent.events().refusals;
  for (const text of [shortened?.path, shortened?.host, shortened?.method, shortened?.subject]) {
    expect(text?.length).toBeLessThan(402);
  }
  expect(token?.path).toBe("/t/[redacted]");
});

it("merges the data of several threads", () => {
  const [one, two] = [recentLog(), recentLog()];
  one.recent.requestFailed({ ...refused, id: 1 });
  two.advance(MINUTE_MS);
  two.recent.requestFailed({ ...refused, id: 2 });
  two.recent.loginFinished("success");
  const { minutes, refusals } = mergeEvents([one.recent.events(), two.recent.events()]);
  expect(minutes).toHaveLength(RECENT_MINUTES);
  expect(minutes.slice(-2).map((minute) => [minute.logins, minute.refusals])).toEqual([
    [{}, { expired: 1 }],
    [{ success: 1 }, { expired: 1 }],
  ]);
  expect(refusals.map(({ id }) => id)).toEqual([2, 1]);
});
