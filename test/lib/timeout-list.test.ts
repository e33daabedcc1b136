import { expect, it } from "vitest";
import { systemClock } from "../../src/lib/clock.ts";
import { TimeoutEntry, TimeoutList } from "../../src/lib/async/timeout-list.ts";
import { until } from "../support/until.ts";

const LIMIT_MS = 60;

class Wait extends TimeoutEntry {
  endedAt: number | undefined;
  readonly #log: string[];
  readonly #name: string;

  constructor(log: string[], name: string) {
    super();
    this.#log = log;
    this.#name = name;
  }

  override onTimeout(): void {
    this.endedAt = performance.now();
    this.#log.push(this.#name);
  }
}

function start(names: string) {
  const log: string[] = [];
  const limit = new TimeoutList(LIMIT_MS, systemClock);
  const waits = names.split("").map((name) => new Wait(log, name));
  for (const wait of waits) limit.start(wait);
  return { log, limit, waits };
}

it("ends each wait once after its timeout, in the order in which they started", async () => {
  const began = performance.now();
  const { log, waits } = start("abcd");
  await until(() => log.length === waits.length);
  expect(log.join("")).toEqual("abcd");
  for (const { endedAt = 0 } of waits) expect(endedAt - began).toBeGreaterThanOrEqual(LIMIT_MS);
  // A second round of the timer would find them again.
  const last = new Wait(log, "e");
  new TimeoutList(2 * LIMIT_MS, systemClock).start(last);
  await until(() => log.includes("e"));
  expect(log.join("")).toEqual("abcde");
});

it.each([
  ["the first", "a", "bcd"],
  ["one in the middle", "b", "acd"],
  ["the last", "d", "abc"],
])("does not end %s if it no longer waits", async (_which, name, rest) => {
  const { log, limit, waits } = start("abcd");
  const wait = waits["abcd".indexOf(name)];
  if (wait === undefined) throw new Error("no such wait");
  limit.cancel(wait);
  await until(() => log.length === rest.length);
  expect(log.join("")).toEqual(rest);
});

it("restarts the timeout for an entry that starts again, or continues with another limit", async () => {
  const { log, limit, waits } = start("abc");
  const [first, second] = waits;
  if (first === undefined || second === undefined) throw new Error("no waits");
  const other = new TimeoutList(3 * LIMIT_MS, systemClock);
  other.start(second);
  limit.start(first);
  await until(() => log.length === 3);
  expect(log.join("")).toEqual("cab");
});

it("continues with waits that start when one ends", async () => {
  const log: string[] = [];
  const limit = new TimeoutList(LIMIT_MS, systemClock);
  class Again extends Wait {
    override onTimeout(): void {
      super.onTimeout();
      if (log.length < 3) limit.start(this);
    }
  }
  limit.start(new Again(log, "a"));
  await until(() => log.length === 3);
});
