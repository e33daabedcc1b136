/** `docs/configuration.md` is what `docs/generate-configuration.ts` makes of the schema, and tells every key of it. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { configurationReference } from "../../docs/generate-configuration.ts";
import { codeIn, readDocument, ROOT } from "./markdown.ts";
import { schemaKeys } from "./schema-keys.ts";

const GENERATOR = "docs/generate-configuration.ts";
const FILE = "docs/configuration.md";

test("the reference is what the generator makes of the schema", () => {
  const written = readFileSync(join(ROOT, FILE), "utf8");
  expect(written, `run: node ${GENERATOR} > ${FILE}`).toBe(configurationReference());
});

test("the generator prints it", () => {
  const printed = execFileSync(process.execPath, [GENERATOR], { cwd: ROOT, encoding: "utf8" });
  expect(printed).toBe(configurationReference());
});

test("every key is told with its default and a meaning", () => {
  const rows = readDocument(FILE).rows("key", "type", "allowed", "default", "meaning");
  const told = new Map(rows.map((row) => [codeIn(row["key"]), row]));
  for (const { key, preset } of schemaKeys()) {
    // A section that is a word, too, has its table below itself.
    if (key === "admin") continue;
    const row = told.get(key);
    expect([key, codeIn(row?.["default"]) || "–"]).toEqual([key, preset]);
  }
  expect(rows.filter((row) => row["meaning"] === "")).toEqual([]);
});

test("words and numbers are told with what is allowed", () => {
  const rows = readDocument(FILE).rows("key", "type", "allowed", "default", "meaning");
  const bare = rows.filter(
    ({ type = "", allowed }) => /\b(?:words?|number)\b/.test(type) && allowed === "",
  );
  expect(bare).toEqual([]);
  const workers = rows.find((row) => codeIn(row["key"]) === "server.workers");
  expect(workers).toMatchObject({ type: "number", allowed: "0 to 512", default: "`1`" });
});
