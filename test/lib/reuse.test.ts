import { expect, test } from "vitest";
import {
  type Leased,
  type Reusable,
  reuseOrCreate,
  reuseOrCreateAsync,
  reuseOrLease,
} from "../../src/lib/async/leased.ts";
import { heapInUse } from "../support/heap.ts";

test("objects with the same inputs are reused, all others are created again", async () => {
  const first = reuseOrCreate(undefined, { key: ["a", 1] }, () => ({}));
  expect(reuseOrCreate(first, { key: ["a", 1] }, () => ({}))).toBe(first);
  expect(await reuseOrCreateAsync(first, { key: ["a", 1] }, async () => ({}))).toBe(first);
  for (const other of [{ key: ["a", 2] }, { key: "a1" }, {}, undefined]) {
    expect(reuseOrCreate(first, other, () => ({})).value).not.toBe(first.value);
    expect((await reuseOrCreateAsync(first, other, async () => ({}))).value).not.toBe(first.value);
  }
});

test.each([
  [Infinity, null],
  [{ limit: undefined }, {}],
  [-0, 0],
])("%o differs from %o", (one, other) => {
  const first = reuseOrCreate(undefined, one, () => ({}));
  expect(reuseOrCreate(first, one, () => ({}))).toBe(first);
  expect(reuseOrCreate(first, other, () => ({}))).not.toBe(first);
});

test("a shared object is closed when its last user releases it", () => {
  const closed: string[] = [];
  const make = (name: string) => () => ({ close: () => void closed.push(name) });
  const first = reuseOrLease(undefined, "a", make("first"));
  const second = reuseOrLease(first, "a", make("never"));
  const third = reuseOrLease(second, "b", make("third"));
  first.value.release();
  expect(closed).toEqual([]);
  second.value.release();
  third.value.release();
  expect(closed).toEqual(["first", "third"]);
});

test("an object keeps none of its predecessors in memory", () => {
  interface Made {
    readonly content: readonly number[];
    close(): void;
  }
  function next(before: Reusable<Leased<Made>> | undefined, at: number): Reusable<Leased<Made>> {
    return reuseOrLease(before, at, () => ({
      content: Array.from({ length: 100_000 }, () => (before === undefined ? 0 : at)),
      close: closed,
    }));
  }
  const closed = (): void => undefined;
  let last = next(undefined, 0);
  const begin = heapInUse();
  for (let at = 1; at <= 50; at += 1) {
    const replaced = last;
    last = next(replaced, at);
    replaced.value.release();
  }
  expect(heapInUse() - begin).toBeLessThan(10 * 1024 ** 2);
  expect(last.value.value.content[0]).toBe(50);
});
