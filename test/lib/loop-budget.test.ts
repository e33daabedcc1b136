import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { LoopBudget } from "../../src/lib/async/loop-budget.ts";

/** Creates a budget of 1 ms, and work that takes 1 ms by its clock. */
function shareOf(): { share: LoopBudget; done: number[]; work: (name: number) => () => number } {
  let time = 0;
  const clock = { now: () => time, monotonic: () => time };
  const done: number[] = [];
  const work = (name: number) => () => {
    time += 1;
    done.push(name);
    return name;
  };
  return { share: new LoopBudget(clock, 1), done, work };
}

test("waiting work is done one piece per turn of the event loop", async () => {
  const { share, done, work } = shareOf();
  expect(share.canRunNow).toBe(true);
  expect(share.runNow(work(1))).toBe(1);
  expect(share.canRunNow).toBe(false);
  const results = Promise.all([share.enqueue(work(2)), share.enqueue(work(3))]);
  expect(done).toEqual([1]);
  await turn();
  expect(done).toEqual([1, 2]);
  expect(share.canRunNow).toBe(false);
  await turn();
  expect(await results).toEqual([2, 3]);
  await turn();
  expect(share.canRunNow).toBe(true);
});

test("an exception goes to the caller, and the next piece of work runs", async () => {
  const { share, work } = shareOf();
  const fails = (): never => {
    throw new Error("no");
  };
  expect(() => share.runNow(fails)).toThrow("no");
  const results = await Promise.allSettled([share.enqueue(fails), share.enqueue(work(1))]);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
});

test("if too much is waiting, more is done at once", async () => {
  const { share, done, work } = shareOf();
  share.runNow(work(0));
  const waiting = Array.from({ length: 256 }, (_, i) => share.enqueue(work(i + 1)));
  expect(share.canRunNow).toBe(true);
  share.runNow(work(-1));
  expect(done).toEqual([0, -1]);
  expect(await Promise.all(waiting)).toHaveLength(256);
});
