import fc from "fast-check";
import { expect, test } from "vitest";
import { RateLimit, localArrivalTimes } from "../../src/policy/rates/rate-limiter.ts";
import { heapInUse } from "../support/heap.ts";

/** Creates a limit with a clock that the test sets. */
function limit(requests: number, withinMs: number, burst: number) {
  let now = 1_000_000;
  const made = new RateLimit("orders", { by: "subject", requests, withinMs, burst }, () =>
    localArrivalTimes({ monotonic: () => now }),
  );
  return { take: (caller: string) => made.take(caller), pass: (ms: number) => (now += ms) };
}

test("a burst passes at once, then one request per interval", () => {
  const { take, pass } = limit(10, 1_000, 3);
  expect([take("a"), take("a"), take("a")]).toEqual([
    { allowed: true, remaining: 2, waitMs: 100 },
    { allowed: true, remaining: 1, waitMs: 200 },
    { allowed: true, remaining: 0, waitMs: 300 },
  ]);
  expect(take("a")).toEqual({ allowed: false, remaining: 0, waitMs: 100 });
  pass(40);
  expect(take("a")).toEqual({ allowed: false, remaining: 0, waitMs: 60 });
  pass(60);
  expect(take("a").allowed).toBe(true);
  expect(take("a").allowed).toBe(false);
});

test("refused requests do not prolong the wait", () => {
  const { take, pass } = limit(1, 1_000, 1);
  take("a");
  for (let i = 0; i < 100; i += 1) expect(take("a").allowed).toBe(false);
  pass(1_000);
  expect(take("a").allowed).toBe(true);
});

test("callers are counted separately", () => {
  const { take } = limit(1, 1_000, 1);
  expect(take("a").allowed).toBe(true);
  expect(take("b").allowed).toBe(true);
  expect(take("a").allowed).toBe(false);
});

test("long names are distinguished", () => {
  const { take } = limit(1, 1_000, 1);
  const long = "x".repeat(8_000);
  expect(take(`${long}a`).allowed).toBe(true);
  expect(take(`${long}b`).allowed).toBe(true);
  expect(take(`${long}a`).allowed).toBe(false);
});

test("for any sequence, no more requests pass than the burst and the rate allow", () => {
  const gaps = fc.array(fc.integer({ min: 0, max: 500 }), { minLength: 1, maxLength: 80 });
  const sizes = fc.integer({ min: 1, max: 20 });
  fc.assert(
    fc.property(gaps, sizes, sizes, (waits, requests, burst) => {
      const { take, pass } = limit(requests, 1_000, burst);
      let elapsed = 0;
      const passed: number[] = [];
      for (const wait of waits) {
        elapsed += wait;
        pass(wait);
        const { allowed, remaining } = take("a");
        if (allowed) passed.push(elapsed);
        expect(remaining).toBeLessThan(burst);
      }
      const tooMany = passed.flatMap((from, first) =>
        passed
          .slice(first)
          .filter((to, more) => more + 1 > burst + ((to - from) * requests) / 1_000 + 1e-6),
      );
      expect(tooMany).toEqual([]);
    }),
    { numRuns: 50 },
  );
});

test("of many callers, the least recent are forgotten, so memory is bounded", () => {
  const { take } = limit(1, 3_600_000, 1);
  take("first");
  const before = heapInUse();
  for (let i = 0; i < 150_000; i += 1) {
    take(`2001:db8:${i >> 16}:${i & 65_535}::/64`);
    if (i % 10_000 === 0) take("busy");
  }
  expect(heapInUse() - before).toBeLessThan(60 * 1024 * 1024);
  expect(take("busy").allowed).toBe(false);
  expect(take("first").allowed).toBe(true);
});
