/** What keeps the source easy to find one's way in: docs/development.md names files by their path alone. */
import { globSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { expect, it } from "vitest";

const SOURCES = join(import.meta.dirname, "../../src");
const MOST_FILES = 20;

const files = globSync("**/*.ts", { cwd: SOURCES });

/** The groups of more than `most` files that `key` puts together. */
function crowded(key: (file: string) => string, most: number): Record<string, string[]> {
  const groups = Object.entries(Object.groupBy(files, key)) as [string, string[]][];
  return Object.fromEntries(groups.filter(([, group]) => group.length > most));
}

it("has no two files of one name", () => {
  expect(files.length).toBeGreaterThan(100);
  expect(crowded((file) => basename(file), 1)).toEqual({});
});

it(`has no folder of more than ${MOST_FILES} files`, () => {
  expect(crowded(dirname, MOST_FILES)).toEqual({});
});
