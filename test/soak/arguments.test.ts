import { expect, test } from "vitest";
import { readArguments } from "../../soak/arguments.ts";
import { createDice } from "../../soak/dice.ts";

test("what is left out has a value", () => {
  const { seed, ...rest } = readArguments([]);
  expect(rest).toEqual({ seconds: 600, rate: 200, workers: 1, json: undefined, help: false });
  expect(Number.isInteger(seed)).toBe(true);
  expect(readArguments(["--minutes", "0.5", "--seed", "7"])).toMatchObject({
    seconds: 30,
    seed: 7,
  });
});

test.each([
  ["--minutes", "0"],
  ["--minutes", ""],
  ["--rate", "fast"],
  ["--workers", "1.5"],
  ["--seed", "-1"],
  ["--hours", "1"],
])("%s %j is refused", (...args) => {
  expect(() => readArguments(args)).toThrow();
});

test("a seed repeats its throws, and another gives others", () => {
  const throws = (seed: number): readonly number[] => {
    const dice = createDice(seed);
    return Array.from({ length: 20 }, () => dice.between(1, 1000));
  };
  expect(throws(5)).toEqual(throws(5));
  expect(throws(5)).not.toEqual(throws(6));
  expect(throws(5).every((value) => value >= 1 && value <= 1000)).toBe(true);
});
