import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { LoopShare } from "../../src/lib/loop-share.ts";

/** A share of 1 ms, and work that takes one by its clock. */
function shareOf(): { share: LoopShare; done: number[]; work: (name: number) => () => number } {
  let time = 0;
  const clock = { now: () => time, monotonic: () => time };
  const done: number[] = [];
  const work = (name: number) => () => {
    time += 1;
    done.push(name);
    return name;
  };
  return { share: new LoopShare(clock, 1), done, work };
}

test("what waits is done one after the other, each in a turn of the loop", async () => {
  const { share, done, work } = shareOf();
  expect(share.free).toBe(true);
  expect(share.now(work(1))).toBe(1);
  expect(share.free).toBe(false);
  const results = Promise.all([share.later(work(2)), share.later(work(3))]);
  expect(done).toEqual([1]);
  await turn();
  expect(done).toEqual([1, 2]);
  expect(share.free).toBe(false);
  await turn();
  expect(await results).toEqual([2, 3]);
  await turn();
  expect(share.free).toBe(true);
});

test("what throws, throws to who asked for it, and the next has its turn", async () => {
  const { share, work } = shareOf();
  const fails = (): never => {
    throw new Error("no");
  };
  expect(() => share.now(fails)).toThrow("no");
  const results = await Promise.allSettled([share.later(fails), share.later(work(1))]);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
});

test("when too much waits, more is done at once", async () => {
  const { share, done, work } = shareOf();
  share.now(work(0));
  const waiting = Array.from({ length: 256 }, (_, i) => share.later(work(i + 1)));
  expect(share.free).toBe(true);
  share.now(work(-1));
  expect(done).toEqual([0, -1]);
  expect(await Promise.all(waiting)).toHaveLength(256);
});
