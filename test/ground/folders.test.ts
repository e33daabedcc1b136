/** Rules that keep the source easy to navigate: docs/development.md refers to files by path only. */
import { globSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const MOST_FILES = 20;

const files = globSync("{src,tools}/**/*.ts", { cwd: ROOT });

/** Groups the files by `key`; returns the groups of more than `most`. */
function crowded(key: (file: string) => string, most: number): Record<string, string[]> {
  const groups = Object.entries(Object.groupBy(files, key)) as [string, string[]][];
  return Object.fromEntries(groups.filter(([, group]) => group.length > most));
}

it("has no two files with the same name", () => {
  expect(files.length).toBeGreaterThan(100);
  expect(crowded((file) => basename(file), 1)).toEqual({});
});

it(`has no folder of more than ${MOST_FILES} files`, () => {
  expect(crowded(dirname, MOST_FILES)).toEqual({});
});
