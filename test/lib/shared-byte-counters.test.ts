import { expect, it } from "vitest";
import {
  allocateCounters,
  roundUpToUnit,
  SharedByteCounters,
} from "../../src/lib/async/shared-counts.ts";

it("counts the clients of all threads together, in one row per thread", () => {
  const memory = allocateCounters(2);
  const [one, other] = [new SharedByteCounters(memory, 0), new SharedByteCounters(memory, 1)];
  const [light, heavy] = [one.bucketOf("10.0.0.1"), one.bucketOf("10.0.0.2")];
  expect([other.bucketOf("10.0.0.1"), other.bucketOf("10.0.0.2")]).toEqual([light, heavy]);
  one.add(light, 3 * 1024);
  one.add(heavy, 2 * 1024);
  expect(other.heaviest()).toBe(light);
  other.add(heavy, 2 * 1024);
  expect([one.own, other.own, one.total, other.total]).toEqual(
    [5, 2, 7, 7].map((kib) => kib * 1024),
  );
  expect([one.heaviest(), other.heaviest()]).toEqual([heavy, heavy]);
  one.add(light, -3 * 1024);
  expect(other.total).toBe(4 * 1024);
});

it("forgets a thread that has ended", () => {
  const memory = allocateCounters(2);
  const [one, other] = [new SharedByteCounters(memory, 0), new SharedByteCounters(memory, 1)];
  one.add(one.bucketOf("a"), 1024);
  other.add(other.bucketOf("b"), 4096);
  new SharedByteCounters(memory, 1).clear();
  expect(one.total).toBe(1024);
  expect(one.heaviest()).toBe(one.bucketOf("a"));
});

it("rounds up, so that waiting bytes never count as 0", () => {
  expect([0, 1, 1024, 1025].map(roundUpToUnit)).toEqual([0, 1024, 1024, 2048]);
});

it("spreads clients over its buckets", () => {
  const weights = new SharedByteCounters(allocateCounters(1), 0);
  const buckets = Array.from({ length: 2_000 }, (_none, i) =>
    weights.bucketOf(`10.0.${i >> 8}.${i & 255}`),
  );
  expect(new Set(buckets).size).toBeGreaterThan(700);
});
