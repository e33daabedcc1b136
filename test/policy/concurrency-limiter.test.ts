import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { RequestsInFlight, SettleConcurrency } from "../../src/core/shared-parts.ts";
import { createSharedCounts, releaseThread } from "../../src/lib/async/shared-counts.ts";
import {
  attachInFlight,
  countInFlight,
  ConcurrencyLimit,
  IN_FLIGHT_TABLE,
} from "../../src/policy/concurrency/concurrency-limiter.ts";

const FEW = { requests: 2, by: "subject" } as const;

describe("the threads of a process", () => {
  const start = (threads: number) => {
    const shared = createSharedCounts(threads, IN_FLIGHT_TABLE);
    const limits = Array.from(
      { length: threads },
      (_, thread) => new ConcurrencyLimit("orders", FEW, attachInFlight(shared, thread)),
    );
    return { shared, limits };
  };

  test("share one count per caller", () => {
    const [one, other] = start(2).limits as [Limit, Limit];
    expect([one.take("a"), other.take("a"), one.take("a"), other.take("a")]).toEqual([
      ...[true, true, false, false],
    ]);
    expect(other.take("b")).toBe(true);
    other.release("a");
    expect([one.take("a"), other.take("a")]).toEqual([true, false]);
  });

  test("requests in flight in a thread that ends no longer count", () => {
    const { shared, limits } = start(2);
    const [one, other] = limits as [Limit, Limit];
    one.take("a");
    one.take("a");
    expect(other.take("a")).toBe(false);
    releaseThread(shared, 0);
    expect(other.take("a")).toBe(true);
  });

  test("any sequence of requests is counted as in a single thread", () => {
    const step = fc.record({
      thread: fc.nat(2),
      key: fc.constantFrom("a", "b", "x".repeat(300)),
      begins: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { limits } = start(3);
        const alone = new ConcurrencyLimit("orders", FEW, countInFlight());
        const requests: { thread: number; key: string }[] = [];
        for (const { thread, key, begins } of steps) {
          if (begins) {
            const allowed = limits[thread]?.take(key);
            expect(allowed).toBe(alone.take(key));
            if (allowed === true) requests.push({ thread, key });
          } else {
            const ended = requests.shift();
            if (ended === undefined) continue;
            limits[ended.thread]?.release(ended.key);
            alone.release(ended.key);
          }
        }
      }),
      { numRuns: 20 },
    );
  });

  test("ten thousand requests of others hardly ever count for a caller", () => {
    const counts = attachInFlight(createSharedCounts(1, IN_FLIGHT_TABLE), 0);
    for (let other = 0; other < 10_000; other += 1) counts.add(`other ${other}`);
    const names = Array.from({ length: 2_000 }, (_, at) => `name ${at}`);
    expect(names.filter((name) => counts.count(name) > 0).length).toBeLessThan(20);
  });
});

type Limit = ConcurrencyLimit;

describe("replicas", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** Starts replicas with the totals that their state server computes. */
  function start(replicas: number) {
    const told = Array.from({ length: replicas }, () => new Map<string, number>());
    const asked: (readonly RequestsInFlight[])[] = [];
    const server = { up: true, forget: () => told.forEach((each) => each.clear()) };
    const settle =
      (own: number): SettleConcurrency =>
      async (counts) => {
        asked.push(counts);
        if (!server.up) return undefined;
        return counts.map(({ key, requests }) => {
          told[own]?.set(key, requests);
          const others = told.filter((_, place) => place !== own);
          return others.reduce((sum, each) => sum + (each.get(key) ?? 0), 0);
        });
      };
    const limits = told.map(
      (_, own) => new ConcurrencyLimit("orders", FEW, countInFlight(), settle(own)),
    );
    return { limits: limits as [Limit, Limit], asked, server };
  }
  const settled = () => vi.advanceTimersByTimeAsync(250);

  test("share a count after 0.1 s", async () => {
    const { limits } = start(2);
    const [one, other] = limits;
    one.take("a");
    one.take("a");
    // The other has not synchronized yet: for a moment, each applies the limit alone.
    expect(other.take("a")).toBe(true);
    await settled();
    expect(other.take("a")).toBe(false);
    one.release("a");
    one.release("a");
    await settled();
    other.take("a");
    await settled();
    expect(other.take("a")).toBe(false);
    other.release("a");
    expect(other.take("a")).toBe(true);
  });

  test("a replica that refused synchronizes again, and notices when others have capacity", async () => {
    const { limits } = start(2);
    const [one, other] = limits;
    one.take("a");
    one.take("a");
    other.take("a");
    await settled();
    other.release("a");
    await settled();
    expect(other.take("a")).toBe(false);
    one.release("a");
    one.release("a");
    await settled();
    other.take("a");
    await settled();
    expect(other.take("a")).toBe(true);
  });

  test("without the server, each immediately counts alone", async () => {
    const { limits, server } = start(2);
    const [one, other] = limits;
    one.take("a");
    one.take("a");
    other.take("a");
    await settled();
    expect(other.take("a")).toBe(false);
    server.up = false;
    await settled();
    expect([other.take("a"), other.take("a")]).toEqual([true, false]);
  });

  test("requests that outlast an outage of the server count again for the others after it", async () => {
    const { limits, server } = start(2);
    const [one, other] = limits;
    one.take("a");
    one.take("a");
    await settled();
    server.up = false;
    await vi.advanceTimersByTimeAsync(10_000);
    server.forget();
    server.up = true;
    await vi.advanceTimersByTimeAsync(5_000);
    if (other.take("a")) other.release("a");
    await settled();
    expect(other.take("a")).toBe(false);
  });

  test("requests that began during an outage count for the others after it", async () => {
    const { limits, server } = start(2);
    const [one, other] = limits;
    server.up = false;
    one.take("a");
    one.take("a");
    await settled();
    server.up = true;
    await vi.advanceTimersByTimeAsync(5_000);
    if (other.take("a")) other.release("a");
    await settled();
    expect(other.take("a")).toBe(false);
  });

  test("a replica with only short requests also learns of the others, and synchronizes every few seconds", async () => {
    const { limits, asked } = start(2);
    const [one, other] = limits;
    const short = (): boolean => {
      const allowed = other.take("a");
      if (allowed) other.release("a");
      return allowed;
    };
    expect(short()).toBe(true);
    await settled();
    expect(asked).toEqual([[{ key: "orders\0subject\0a", requests: 0 }]]);
    one.take("a");
    one.take("a");
    const refusals: boolean[] = [];
    for (let round = 0; round < 45; round += 1) {
      refusals.push(!short());
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(refusals.at(-1)).toBe(true);
    const before = asked.length;
    one.release("a");
    one.release("a");
    for (let round = 0; round < 3; round += 1) {
      short();
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(short()).toBe(true);
    for (let round = 0; round < 40; round += 1) {
      expect(short()).toBe(true);
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(asked.length - before).toBeLessThan(12);
  });

  test("requests that stay in flight are reported again until they end", async () => {
    const { limits, asked } = start(1);
    const [one] = limits;
    one.take("long");
    await vi.advanceTimersByTimeAsync(10_000);
    expect(asked.length).toBeGreaterThanOrEqual(5);
    expect(asked.length).toBeLessThan(10);
    one.release("long");
    await settled();
    expect(asked.at(-1)).toEqual([{ key: "orders\0subject\0long", requests: 0 }]);
    await vi.advanceTimersByTimeAsync(5_000);
    const before = asked.length;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(asked.length).toBe(before);
    expect(vi.getTimerCount()).toBe(0);
  });
});
