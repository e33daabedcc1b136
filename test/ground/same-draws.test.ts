import fc from "fast-check";
import { expect, it } from "vitest";

const draws: string[] = [];

// Without the seed of the process, each test would draw other values.
it.each([1, 2, 3])("run %i of a property draws the same values as the first", () => {
  const met: number[] = [];
  fc.assert(fc.property(fc.integer(), (drawn) => void met.push(drawn)));
  draws.push(JSON.stringify(met));
  expect(met).toHaveLength(100);
  expect(new Set(draws).size).toBe(1);
});
