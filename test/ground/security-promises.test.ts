/**
 * SECURITY.md names a test for each promise and for each class of other projects' advisories; this fails if one of
 * these tests is missing, or an attack test is not listed.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const text = readFileSync(join(ROOT, "SECURITY.md"), "utf8");
const named = [...text.matchAll(/`(test\/[^`]*)`/g)].map(([, path]) => path ?? "");

it.each(named)("%s exists and contains tests", (path) => {
  const tests = path.endsWith("/") ? globSync(`${path}**/*.test.ts`, { cwd: ROOT }) : [path];
  expect(tests).not.toEqual([]);
  expect(tests.every((test) => existsSync(join(ROOT, test)))).toBe(true);
});

it.each(globSync("test/{,slow/}security/*.test.ts", { cwd: ROOT }))("%s is listed", (path) => {
  expect(named).toContain(path);
});

describe("the classes of other projects' advisories", () => {
  const CLASSES = 46;
  const rows = [...text.matchAll(/^\| (\d+) \| .+ \| (.+) \| (.+) \|$/gm)].map(
    ([, number, advisories = "", tests = ""]) => ({ number: Number(number), advisories, tests }),
  );

  it("are all there, each with an advisory", () => {
    const numbers = rows.map(({ number }) => number);
    expect(numbers).toEqual(Array.from({ length: CLASSES }, (_, at) => at + 1));
    expect(rows.filter(({ advisories }) => !/\d/.test(advisories))).toEqual([]);
  });

  it.each(rows)(
    "$number has a test, which names it if it is about neighbours",
    ({ number, tests }) => {
      const files = [...tests.matchAll(/`(test\/[^`]*)`/g)].map(([, path]) => path ?? "");
      expect(files).not.toEqual([]);
      const [own] = files.filter((path) => path.includes("/neighbours-"));
      if (own === undefined || own.includes("/slow/")) return;
      expect(numbersIn(readFileSync(join(ROOT, own), "utf8"))).toContain(number);
    },
  );

  /** The numbers in the names of the tests: `14, 15:` or `16 to 18:`. */
  function numbersIn(source: string): number[] {
    const lists = [...source.matchAll(/["`](\d[\d, to]*)(?::|$)/gm)].map(([, list = ""]) => list);
    return lists.flatMap((list) =>
      list.split(", ").flatMap((part) => {
        const [first = 0, last = first] = part.split(" to ").map(Number);
        return Array.from({ length: last - first + 1 }, (_, more) => first + more);
      }),
    );
  }

  it("stay absent where there is nothing to test: 43 (snapshots)", () => {
    const absent = rows.filter(({ tests }) => tests.startsWith("not present"));
    expect(absent.map(({ number }) => number)).toEqual([43]);
    const sources = globSync(["{src,tools}/**/*.ts", "bin/*", "build/*.ts", "Dockerfile"], {
      cwd: ROOT,
    });
    const using = (words: RegExp): string[] =>
      sources.filter((file) => words.test(readFileSync(join(ROOT, file), "utf8")));
    expect(using(/snapshot-blob|build-snapshot|startupSnapshot/)).toEqual([]);
  });
});
