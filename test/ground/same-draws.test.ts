import fc from "fast-check";
import { expect, it } from "vitest";

const draws: string[] = [];

// Each test would draw anew without the seed of the process.
it.each([1, 2, 3])("try %i of a property meets the draws of the first", () => {
  const met: number[] = [];
  fc.assert(fc.property(fc.integer(), (drawn) => void met.push(drawn)));
  draws.push(JSON.stringify(met));
  expect(met).toHaveLength(100);
  expect(new Set(draws).size).toBe(1);
});
