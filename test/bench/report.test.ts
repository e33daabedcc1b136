import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { medianInterval, ratioOf, spreadOf } from "../../bench/report/statistics.ts";
import { judge } from "../../bench/report/targets.ts";
import { FIGURES_BEGIN, FIGURES_END } from "../../bench/report/document.ts";
import type { Row } from "../../bench/report/results.ts";

const row = (peer: Row["peer"], cpu: readonly number[], variant = "TLS"): Row => ({
  scenario: "a",
  variant,
  peer,
  rounds: { cpu },
});

describe("statistics", () => {
  test("a spread is the median with the lowest and the highest", () => {
    expect(spreadOf([3, 1, 2])).toEqual({ median: 2, low: 1, high: 3 });
    expect(spreadOf([4, 1, 2, 3])).toEqual({ median: 2.5, low: 1, high: 4 });
    expect(spreadOf([])).toBeUndefined();
  });

  test("a ratio is taken within each round, and a round that one of them missed does not count", () => {
    expect(ratioOf([10, 40, 5], [10, 20])).toEqual({ median: 1.5, low: 1, high: 2 });
  });

  // The ranks of tables of the sign test.
  test.each([
    [6, 1, 6],
    [8, 1, 8],
    [9, 2, 8],
    [20, 6, 15],
    [100, 40, 61],
  ])("of %d values, the median lies between the %d. and the %d.", (count, low, high) => {
    const values = Array.from({ length: count }, (_, at) => count - at);
    expect(medianInterval(values)).toEqual({ low, high });
  });

  test("five values say nothing of where the median lies", () => {
    expect(medianInterval([1, 2, 3, 4, 5])).toBeUndefined();
    expect(medianInterval([])).toBeUndefined();
  });
});

describe("targets", () => {
  const wordOf = (rows: readonly Row[], what: string) =>
    judge({ rows }).find((verdict) => verdict.what === what)?.word;

  test("a ratio is judged by its median", () => {
    const what = "(a) TLS, CPU to haproxy";
    const haproxy = row("haproxy", [20, 20, 20]);
    expect(wordOf([row("sallyport", [30, 36, 60]), haproxy], what)).toBe("PASS");
    expect(wordOf([row("sallyport", [30, 37, 60]), haproxy], what)).toBe("FAIL");
    expect(wordOf([row("sallyport", [30, 36, 60], "plain"), haproxy], what)).toBe("no figure");
  });
});

test("the document has the marks that figures are written between", async () => {
  const text = await readFile(new URL("../../bench/RESULTS.md", import.meta.url), "utf8");
  expect(text.split(FIGURES_BEGIN)).toHaveLength(2);
  expect(text.split(FIGURES_END)).toHaveLength(2);
  expect(text.indexOf(FIGURES_BEGIN)).toBeLessThan(text.indexOf(FIGURES_END));
});
