import { describe, expect, test } from "vitest";
import {
  attachSharedTimes,
  RateLimit,
  createSharedTimes,
} from "../../../src/policy/rates/rate-limiter.ts";

/** Creates limits of one request per hour with a fixed clock. */
function start() {
  const timesOf = attachSharedTimes(createSharedTimes(), () => 5_000_000);
  return (name: string, burst: number) =>
    new RateLimit(name, { by: "subject", requests: 1, withinMs: 3_600_000, burst }, timesOf);
}

describe("a rate limit of several threads", () => {
  test("many callers of one limit evict no caller of another", () => {
    const limit = start();
    const quiet = limit("quiet", 1);
    const crowded = limit("crowded", 5);
    const few = Array.from({ length: 200 }, (_, at) => `caller ${at}`);
    for (const key of few) quiet.take(key);
    for (let at = 0; at < 200_000; at += 1) crowded.take(`2001:db8:${at}::/64`);
    expect(few.filter((key) => quiet.take(key).allowed)).toEqual([]);
    // Within a limit, the callers with the least debt are evicted.
    for (let again = 0; again < 4; again += 1) crowded.take("busy");
    for (let at = 0; at < 200_000; at += 1) crowded.take(`2001:db9:${at}::/64`);
    expect([crowded.take("busy").allowed, crowded.take("busy").allowed]).toEqual([true, false]);
  });

  test("fifty thousand concurrent callers are all remembered", () => {
    const limit = start();
    const orders = limit("orders", 1);
    for (let at = 0; at < 50_000; at += 1) orders.take(`caller ${at}`);
    let forgotten = 0;
    for (let at = 0; at < 50_000; at += 1) if (orders.take(`caller ${at}`).allowed) forgotten += 1;
    // Buckets have eight of 131,072 slots each; more than eight of fifty thousand callers in one are rare.
    expect(forgotten).toBeLessThan(500);
  });
});
