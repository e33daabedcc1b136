import fc from "fast-check";
import { expect, test } from "vitest";
import { createResponseIds } from "../../src/lib/http/response-ids.ts";

const START_MS = Date.UTC(2026, 10, 20);

function drawn(next: () => number, count: number): number[] {
  return Array.from({ length: count }, next);
}

test("two threads of a process never use the same number, whenever they started", () => {
  const beginnings = fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(beginnings, (delays) => {
      const ids = delays.flatMap((delay, index) =>
        drawn(createResponseIds(START_MS + delay, index, delays.length), 600),
      );
      expect(new Set(ids).size).toBe(ids.length);
    }),
  );
});

test("a restarted process continues above its predecessor, with any number of threads", () => {
  const stride = fc.integer({ min: 1, max: 512 });
  fc.assert(
    fc.property(stride, stride, fc.integer({ min: 1, max: 200 }), (before, after, uptimeMs) => {
      const last = (before: number, count: number): number =>
        drawn(createResponseIds(START_MS, before - 1, before), count).at(-1) ?? 0;
      const highest = last(before, Math.floor((uptimeMs * 2000) / before));
      const first = createResponseIds(START_MS + uptimeMs + 1, 0, after)();
      expect(first).toBeGreaterThan(highest);
    }),
    { numRuns: 50 },
  );
});

test("the numbers are safe integers, in this century too", () => {
  for (const start of [START_MS, Date.UTC(2100, 0, 1)]) {
    const ids = drawn(createResponseIds(start, 511, 512), 1000);
    expect(ids.every(Number.isSafeInteger)).toBe(true);
    expect(new Set(ids).size).toBe(1000);
  }
});
