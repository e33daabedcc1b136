/** Statements about the repository in `docs/development.md` and the README are true, and their lists are complete. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { codesIn, readDocument, ROOT } from "./markdown.ts";

interface Package {
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

const readme = readDocument("README.md");
const development = readDocument("docs/development.md");
const { scripts, dependencies, devDependencies } = packageIn(".");
const tools = readdirSync(join(ROOT, "tools"));

function packageIn(folder: string): Package {
  return JSON.parse(readFileSync(join(ROOT, folder, "package.json"), "utf8")) as Package;
}

test("exactly the libraries in use are listed", () => {
  const listed = development.rows("library", "why").flatMap((row) => codesIn(row["library"]));
  const used = [
    dependencies,
    ...tools.map((tool) => packageIn(join("tools", tool)).dependencies ?? {}),
  ].flatMap((each) => Object.keys(each));
  expect(listed.toSorted()).toEqual([...new Set(used)].toSorted());
  const others = development
    .rows("development", "why")
    .flatMap((row) => codesIn(row["development"]));
  expect(others.toSorted()).toEqual(Object.keys(devDependencies).toSorted());
});

test("exactly the folders of the source are listed", () => {
  const listed = development.rows("folder", "holds").flatMap((row) => codesIn(row["folder"]));
  const folders = readdirSync(join(ROOT, "src"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `src/${name}`);
  const all = [...folders, ...tools.map((tool) => `tools/${tool}`)];
  expect(listed.toSorted()).toEqual(all.toSorted());
});

test("the named scripts exist", () => {
  const text = readme.text + development.text;
  const named = [...text.matchAll(/npm (?:run ([\w:]+)|(start|test)\b)/g)].map(
    ([, run, short]) => run ?? short ?? "",
  );
  expect(named).toEqual(expect.arrayContaining(["start", "check", "fuzz"]));
  expect(named.filter((script) => !(script in scripts))).toEqual([]);
});

test("the named files exist", () => {
  const text = readme.text + development.text;
  const named = [...text.matchAll(/`((?:test|src|tools|\.ci)\/[\w./-]+)`/g)].map(
    ([, path = ""]) => path,
  );
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

interface Place {
  readonly file: string;
  readonly symbols: readonly string[];
}

describe("the life of a request and what to edit", () => {
  const steps = development.rows("where", "what happens");
  const changes = development.rows("to add", "edit");

  test("each row names places", () => {
    expect(steps.length).toBeGreaterThan(12);
    expect(changes.length).toBeGreaterThanOrEqual(12);
    const places = [...steps.map((row) => row["where"]), ...changes.map((row) => row["edit"])].map(
      placesIn,
    );
    expect(places.filter((found) => found.length === 0)).toEqual([]);
  });

  test("every named source file has a symbol to search for", () => {
    const bare = [...development.text.matchAll(/`((?:src|tools)\/[\w./-]+\.ts)`(?! \()/g)].map(
      ([, file]) => file,
    );
    expect(bare).toEqual([]);
  });

  test.each(placesIn(development.text))("$file holds $symbols", ({ file, symbols }) => {
    const text = readFileSync(join(ROOT, file), "utf8");
    const missing = symbols.filter((symbol) => !new RegExp(String.raw`\b${symbol}\b`).test(text));
    expect(missing).toEqual([]);
  });

  test("a missing place would be found", () => {
    expect(placesIn("`src/a.ts` (`one`, `two`) and `b.json` (`c`)")).toEqual([
      { file: "src/a.ts", symbols: ["one", "two"] },
      { file: "b.json", symbols: ["c"] },
    ]);
  });
});

/** Returns every `file` (`symbol`, `symbol`) in a text. */
function placesIn(text = ""): Place[] {
  return [...text.matchAll(/`([\w./-]+\.(?:ts|json))` \((`\w+`(?:, `\w+`)*)\)/g)].map(
    ([, file = "", symbols]) => ({ file, symbols: codesIn(symbols) }),
  );
}
