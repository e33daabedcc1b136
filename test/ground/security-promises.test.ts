/**
 * SECURITY.md names a test for each promise; this fails if one of these tests is missing, or an attack test is not
 * listed.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const named = [...readFileSync(join(ROOT, "SECURITY.md"), "utf8").matchAll(/`(test\/[^`]*)`/g)].map(
  ([, path]) => path ?? "",
);

it.each(named)("%s exists and contains tests", (path) => {
  const tests = path.endsWith("/") ? globSync(`${path}**/*.test.ts`, { cwd: ROOT }) : [path];
  expect(tests).not.toEqual([]);
  expect(tests.every((test) => existsSync(join(ROOT, test)))).toBe(true);
});

it.each(globSync("test/{,slow/}security/*.test.ts", { cwd: ROOT }))("%s is listed", (path) => {
  expect(named).toContain(path);
});
