/** The README's table of the configuration has every key of the schema with its default, and its example is a good one. */
import { expect, test } from "vitest";
import { checked, namedFiles } from "./checked-configuration.ts";
import { codeIn, readDocument } from "./markdown.ts";
import { schemaKeys } from "./schema-keys.ts";

const readme = readDocument("README.md");

test("the schema is read down to its leaves", () => {
  const keys = schemaKeys();
  expect(keys).toContainEqual({ key: "server.listen", type: "text", preset: "0.0.0.0:8443" });
  expect(keys).toContainEqual({
    key: "tokens.trusted[].clockSkew",
    type: "duration",
    preset: "60s",
  });
  expect(keys).toContainEqual({ key: "server.tls", type: "word or mapping", preset: "required" });
  expect(new Set(keys.map(({ key }) => key)).size).toBe(keys.length);
});

test("every key is told with its default, and no other", () => {
  const told = readme
    .rows("section", "keys and defaults")
    .flatMap((row) => keysIn(codeIn(row["section"]), row["keys and defaults"]));
  const keys = schemaKeys()
    // A section that is a word, too, has its row by its keys.
    .filter(({ key }) => key !== "admin")
    .map(({ key, preset }) => ({ key, preset }));
  expect(told.toSorted(byKey)).toEqual(keys.toSorted(byKey));
});

test("the example has ten lines at most, and passes the check", async () => {
  const [example = "", ...more] = readme.blocks
    .filter(({ language }) => language === "yaml")
    .map(({ text }) => text);
  expect(more).toEqual([]);
  expect(example).toMatch(/^# config\.yaml\n/);
  expect(example.trimEnd().split("\n").length).toBeLessThanOrEqual(10);
  expect(await checked(example, await namedFiles())).toMatchObject({ code: 0, err: "" });
});

interface Told {
  readonly key: string;
  /** As in `SchemaKey`. */
  readonly preset: string;
}

/** The keys of a row: `key: default`, a bare `key`, or a bold one that is required. What stands in brackets is no key. */
function keysIn(section: string, cell = ""): Told[] {
  const keys = cell.replaceAll(/\([^)]*\)/g, "").matchAll(/(\*\*)?`([\w.[\]]+)(?:: ([^`]+))?`/g);
  return [...keys].map(([, bold, name = "", preset]) => ({
    key: `${section}.${name}`,
    preset: bold === undefined ? (preset ?? "–") : "required",
  }));
}

function byKey(a: Told, b: Told): number {
  return a.key < b.key ? -1 : 1;
}
