/** What the README says about the repository is there, and what is there is said. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { codeIn, codesIn, readDocument, ROOT } from "./markdown.ts";

interface Package {
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

const readme = readDocument("README.md");
const { scripts, dependencies, devDependencies } = JSON.parse(
  readFileSync(join(ROOT, "package.json"), "utf8"),
) as Package;

test("every library is told, and no other", () => {
  const told = readme.rows("library", "door", "why");
  expect(told.map((row) => codeIn(row["library"])).toSorted()).toEqual(
    Object.keys(dependencies).toSorted(),
  );
  const tools = readme.rows("development", "why").flatMap((row) => codesIn(row["development"]));
  expect(tools.toSorted()).toEqual(Object.keys(devDependencies).toSorted());
});

test("every folder of the source is told, and no other", () => {
  const told = readme.rows("folder", "holds").map((row) => codeIn(row["folder"]));
  const folders = readdirSync(join(ROOT, "src"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `src/${name}`);
  expect(told.toSorted()).toEqual(folders.toSorted());
});

test("the scripts that are named exist", () => {
  const named = [...readme.text.matchAll(/npm (?:run ([\w:]+)|(start|test)\b)/g)].map(
    ([, run, short]) => run ?? short ?? "",
  );
  expect(named).toContain("check");
  expect(named.filter((script) => !(script in scripts))).toEqual([]);
});

test("the files that are named and linked exist", () => {
  const linked = [...readme.text.matchAll(/\]\(([^):#]+)\)/g)].map(([, path = ""]) => path);
  const named = [...readme.text.matchAll(/`((?:test|src|\.ci)\/[\w./-]+)`/g)].map(
    ([, path = ""]) => path,
  );
  expect(named.length).toBeGreaterThan(10);
  expect([...linked, ...named].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});
