import { expect, it } from "vitest";
import { LogBacklog, logBacklogMemory } from "../../src/app/threads/log-backlog.ts";

const MAX_WAITING = 1_000;

function twoThreads(): readonly [LogBacklog, LogBacklog] {
  const memory = logBacklogMemory(2);
  return [new LogBacklog(memory, 0, MAX_WAITING), new LogBacklog(memory, 1, MAX_WAITING)];
}

it("the bound holds for all threads together, and there is room again for what was taken", () => {
  const [one, other] = twoThreads();
  expect([one.add(600), other.add(400), other.add(1), one.add(1)]).toEqual([
    true,
    true,
    false,
    false,
  ]);
  one.received(600);
  expect([other.add(500), other.add(101), other.add(100)]).toEqual([true, false, true]);
});

it("lines that were lost are collected once, for each thread", () => {
  const [one, other] = twoThreads();
  for (let line = 0; line < 3; line += 1) one.add(MAX_WAITING + 1);
  expect([one.collectLost(), one.collectLost(), other.collectLost()]).toEqual([3, 0, 0]);
});

it("the room of a thread that is gone is free again, and what it lost is still counted", () => {
  const [one, other] = twoThreads();
  one.add(MAX_WAITING);
  one.add(1);
  expect(other.add(1)).toBe(false);
  one.clear();
  expect([other.add(MAX_WAITING), one.collectLost()]).toEqual([true, 1]);
});
