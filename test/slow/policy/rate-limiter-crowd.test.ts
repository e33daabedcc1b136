import { describe, expect, test } from "vitest";
import { createRateLimit } from "../../../src/policy/rates/rate-limiter.ts";
import {
  attachSharedTimes,
  createSharedTimes,
} from "../../../src/policy/rates/shared-arrival-times.ts";

/** Limits of one request an hour, at a clock that stands still. */
function start() {
  const timesOf = attachSharedTimes(createSharedTimes(), () => 5_000_000);
  return (name: string, burst: number) =>
    createRateLimit({ by: "subject", requests: 1, withinMs: 3_600_000, burst }, timesOf(name));
}

describe("a rate limit of several threads", () => {
  test("a crowd of callers makes none of another limit forgotten", () => {
    const limit = start();
    const quiet = limit("quiet", 1);
    const crowded = limit("crowded", 5);
    const few = Array.from({ length: 200 }, (_, at) => `caller ${at}`);
    for (const key of few) quiet.take(key);
    for (let at = 0; at < 200_000; at += 1) crowded.take(`2001:db8:${at}::/64`);
    expect(few.filter((key) => quiet.take(key).allowed)).toEqual([]);
    // Of its own, those are forgotten who owe least.
    for (let again = 0; again < 4; again += 1) crowded.take("busy");
    for (let at = 0; at < 200_000; at += 1) crowded.take(`2001:db9:${at}::/64`);
    expect([crowded.take("busy").allowed, crowded.take("busy").allowed]).toEqual([true, false]);
  });

  test("fifty thousand callers at a time are all remembered", () => {
    const limit = start();
    const orders = limit("orders", 1);
    for (let at = 0; at < 50_000; at += 1) orders.take(`caller ${at}`);
    let forgotten = 0;
    for (let at = 0; at < 50_000; at += 1) if (orders.take(`caller ${at}`).allowed) forgotten += 1;
    // Eight of 131,072 places each: more than eight of fifty thousand in one bucket are rare.
    expect(forgotten).toBeLessThan(500);
  });
});
