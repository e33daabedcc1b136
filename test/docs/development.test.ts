/** What `docs/development.md` and the README say about the repository is there, and what is there is said. */
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
const development = readDocument("docs/development.md");
const { scripts, dependencies, devDependencies } = JSON.parse(
  readFileSync(join(ROOT, "package.json"), "utf8"),
) as Package;

test("every library is told, and no other", () => {
  const told = development.rows("library", "door", "why");
  expect(told.map((row) => codeIn(row["library"])).toSorted()).toEqual(
    Object.keys(dependencies).toSorted(),
  );
  const tools = development
    .rows("development", "why")
    .flatMap((row) => codesIn(row["development"]));
  expect(tools.toSorted()).toEqual(Object.keys(devDependencies).toSorted());
});

test("every folder of the source is told, and no other", () => {
  const told = development.rows("folder", "holds").map((row) => codeIn(row["folder"]));
  const folders = readdirSync(join(ROOT, "src"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `src/${name}`);
  expect(told.toSorted()).toEqual(folders.toSorted());
});

test("the scripts that are named exist", () => {
  const text = readme.text + development.text;
  const named = [...text.matchAll(/npm (?:run ([\w:]+)|(start|test)\b)/g)].map(
    ([, run, short]) => run ?? short ?? "",
  );
  expect(named).toEqual(expect.arrayContaining(["start", "check", "fuzz"]));
  expect(named.filter((script) => !(script in scripts))).toEqual([]);
});

test("the files that are named exist", () => {
  const text = readme.text + development.text;
  const named = [...text.matchAll(/`((?:test|src|\.ci)\/[\w./-]+)`/g)].map(([, path = ""]) => path);
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});
