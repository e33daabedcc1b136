import { beforeEach, expect, test } from "vitest";
import { Outage } from "../../src/lib/outage.ts";

let now: number;
let outage: Outage;
beforeEach(() => {
  now = 5_000_000;
  outage = new Outage({ now: () => 0, monotonic: () => now });
});

function failAfter(ms: number) {
  now += ms;
  return outage.failed();
}

test("logs the first failure, a reminder every ten minutes, and the end", () => {
  expect(outage.failed()).toEqual({ attempts: 1, seconds: 0 });
  expect(failAfter(599_999)).toBeUndefined();
  expect(failAfter(1)).toEqual({ attempts: 3, seconds: 600 });
  expect(failAfter(1_000)).toBeUndefined();
  now += 1_000;
  expect(outage.succeeded()).toEqual({ attempts: 4, seconds: 602 });
  expect(outage.failures).toBe(0);
});

test("logs neither the beginning nor the end of outages that follow within ten seconds", () => {
  outage.failed();
  outage.succeeded();
  for (let turn = 0; turn < 9; turn++) {
    expect(failAfter(1_000)).toBeUndefined();
    expect(outage.succeeded()).toBeUndefined();
  }
  expect(failAfter(1_000)).toEqual({ attempts: 1, seconds: 0 });
});

test("logs an outage that began in the quiet time as soon as that is over", () => {
  outage.failed();
  outage.succeeded();
  expect(failAfter(9_000)).toBeUndefined();
  expect(failAfter(1_000)).toEqual({ attempts: 2, seconds: 1 });
  expect(outage.succeeded()).toEqual({ attempts: 2, seconds: 1 });
});

test("a success without a failure before it is no end", () => {
  expect(outage.succeeded()).toBeUndefined();
});
