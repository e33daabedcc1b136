import { expect, it } from "vitest";
import { LogBacklog, logBacklogMemory } from "../../src/app/threads/log-backlog.ts";

const MAX_WAITING = 1_000;

function twoThreads(): readonly [LogBacklog, LogBacklog] {
  const memory = logBacklogMemory(2);
  return [new LogBacklog(memory, 0, MAX_WAITING), new LogBacklog(memory, 1, MAX_WAITING)];
}

it("all threads share one limit, and lines that are taken free their space", () => {
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

it("the number of lost lines is reported once per thread", () => {
  const [one, other] = twoThreads();
  for (let line = 0; line < 3; line += 1) one.add(MAX_WAITING + 1);
  expect([one.collectLost(), one.collectLost(), other.collectLost()]).toEqual([3, 0, 0]);
});

it("the space of a thread that has ended is free again, and its lost lines still count", () => {
  const [one, other] = twoThreads();
  one.add(MAX_WAITING);
  one.add(1);
  expect(other.add(1)).toBe(false);
  one.clear();
  expect([other.add(MAX_WAITING), one.collectLost()]).toEqual([true, 1]);
});
