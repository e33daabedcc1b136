import { expect, it } from "vitest";
import { ReadingPace } from "../../src/upstream/pool/slot.ts";

const RATE = 256 * 1024;
/** The bytes that the system accepts at once when it has room again. */
const STEP = 1_250_000;

/** Returns whether a client with this reading rate is ever slow within a hundred steps. */
function isEverSlow(bytesPerSecond: number): boolean {
  const pace = new ReadingPace(0);
  let slowAt = pace.waits(0, 0);
  for (let step = 1; step <= 100; step += 1) {
    const now = ((step * STEP) / bytesPerSecond) * 1000;
    if (now > slowAt) return true;
    pace.goesOn(now);
    slowAt = pace.waits(step * STEP, now);
  }
  return false;
}

it.each([RATE, 600_000, 5_000_000])("is never slow at %d bytes a second", (rate) => {
  expect(isEverSlow(rate)).toBe(false);
});

it.each([RATE * 0.9, 50_000, 1_000])("is slow at %d bytes a second", (rate) => {
  expect(isEverSlow(rate)).toBe(true);
});

it("is slow after five seconds without progress, whatever was read before", () => {
  const pace = new ReadingPace(0);
  expect(pace.waits(1_000_000_000, 1_000)).toBe(6_000);
  expect(pace.waits(1_000_000_000, 5_999)).toBe(6_000);
  expect(pace.waits(1_000_000_001, 7_000)).toBeLessThan(7_000);
});

it("does not count time in which the backend is slow", () => {
  const pace = new ReadingPace(0);
  expect(pace.waits(0, 0)).toBe(5_000);
  pace.goesOn(1_000);
  expect(pace.waits(0, 600_000)).toBe(604_000);
});
