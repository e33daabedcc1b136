import { once } from "node:events";
import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { timeOfAllThreads } from "../../src/lib/clock.ts";
import {
  attachSharedTimes,
  RateLimit,
  createSharedTimes,
  localArrivalTimes,
} from "../../src/policy/rates/rate-limiter.ts";
import type { SpendingThread, Spent } from "./spending-thread.ts";

/** Starts threads that share a count, with a clock that the test sets. */
function start(threads: number) {
  const shared = createSharedTimes();
  let now = 5_000_000;
  const attached = Array.from({ length: threads }, () => attachSharedTimes(shared, () => now));
  return {
    limits: (name: string, requests: number, withinMs: number, burst: number) =>
      attached.map(
        (timesOf) => new RateLimit(name, { by: "subject", requests, withinMs, burst }, timesOf),
      ),
    clock: { monotonic: () => now },
    pass: (ms: number) => (now += ms),
  };
}

type Limit = RateLimit;

describe("a rate limit of several threads", () => {
  test("is a single limit per caller", () => {
    const { limits, pass } = start(2);
    const [one, other] = limits("orders", 10, 1_000, 3) as [Limit, Limit];
    expect([one.take("a"), other.take("a"), one.take("a"), other.take("a")]).toEqual([
      { allowed: true, remaining: 2, waitMs: 100 },
      { allowed: true, remaining: 1, waitMs: 200 },
      { allowed: true, remaining: 0, waitMs: 300 },
      { allowed: false, remaining: 0, waitMs: 100 },
    ]);
    expect(other.take("b").allowed).toBe(true);
    pass(100);
    expect([one.take("a").allowed, other.take("a").allowed]).toEqual([true, false]);
  });

  test("is independent of other routes", () => {
    const { limits } = start(1);
    const [orders] = limits("orders", 1, 1_000, 1) as [Limit];
    const [invoices] = limits("invoices", 1, 1_000, 1) as [Limit];
    expect([orders.take("a").allowed, invoices.take("a").allowed]).toEqual([true, true]);
    expect([orders.take("a").allowed, invoices.take("a").allowed]).toEqual([false, false]);
  });

  test("gives the same results as a single thread for any sequence", () => {
    const step = fc.record({
      thread: fc.nat(2),
      key: fc.constantFrom("a", "b", "x".repeat(300)),
      wait: fc.integer({ min: 0, max: 200 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.nat(9), (steps, more) => {
        const { limits, clock, pass } = start(3);
        const settings = { requests: 10, withinMs: 1_000, burst: 1 + more };
        const all = limits("orders", settings.requests, settings.withinMs, settings.burst);
        const alone = new RateLimit("orders", { by: "subject", ...settings }, () =>
          localArrivalTimes(clock),
        );
        for (const { thread, key, wait } of steps) {
          pass(wait);
          expect(all[thread]?.take(key)).toEqual(alone.take(key));
        }
      }),
      { numRuns: 20 },
    );
  });

  test("admits exactly the burst with threads that run at the same time", async () => {
    const burst = 20_000;
    const data: SpendingThread = { shared: createSharedTimes(), burst, takes: burst };
    const file = new URL("./spending-thread.ts", import.meta.url);
    const threads = [1, 2, 3].map(() => new Worker(file, { workerData: data }));
    const spent = await Promise.all(threads.map((each) => once(each, "message")));
    const all: Spent[] = spent.map(([each]) => each);
    expect(all.reduce((sum, { allowed }) => sum + allowed, 0)).toBe(burst);
    await Promise.all(threads.map((each) => each.terminate()));
    const settings = { by: "subject", requests: 1, withinMs: 86_400_000, burst } as const;
    const timesOf = attachSharedTimes(data.shared, timeOfAllThreads());
    expect(new RateLimit("orders", settings, timesOf).take("a").allowed).toBe(false);
  });

  test("survives a thread that ends while it holds the lock", () => {
    const shared = createSharedTimes();
    new Int32Array(shared.memory, 0, 2 ** 14).fill(1);
    const times = attachSharedTimes(shared, timeOfAllThreads())("orders");
    const began = performance.now();
    expect(times.take("a", 1_000, 0)).toBe(0);
    expect(performance.now() - began).toBeLessThan(1_000);
    expect(times.take("a", 1_000, 0)).toBeGreaterThan(0);
  });
});
