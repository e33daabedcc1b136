/**
 * `docs/reference/configuration.md` is generated from the schema by `docs/generate-configuration.ts`, and has every
 * key.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { configurationReference } from "../../docs/generate-configuration.ts";
import { codeIn, readDocument, ROOT } from "./markdown.ts";
import { schemaKeys } from "./schema-keys.ts";

const GENERATOR = "docs/generate-configuration.ts";
const FILE = "docs/reference/configuration.md";
const COLUMNS = ["key", "type", "values", "required", "default", "meaning"];

test("the reference is up to date with the schema", () => {
  const written = readFileSync(join(ROOT, FILE), "utf8");
  expect(written, `run: node ${GENERATOR} > ${FILE}`).toBe(configurationReference());
});

test("the generator prints it", () => {
  const printed = execFileSync(process.execPath, [GENERATOR], { cwd: ROOT, encoding: "utf8" });
  expect(printed).toBe(configurationReference());
});

test("the schema is read completely", () => {
  const keys = schemaKeys();
  expect(keys).toContainEqual({
    ...{ key: "server.listen", type: "text", required: false, preset: "0.0.0.0:8443" },
  });
  expect(keys).toContainEqual({
    ...{ key: "tokens.trusted[].clockSkew", type: "duration", required: false, preset: "60s" },
  });
  expect(keys).toContainEqual({
    ...{ key: "server.tls", type: "word or mapping", required: true, preset: "" },
  });
  expect(new Set(keys.map(({ key }) => key)).size).toBe(keys.length);
});

test("every key has a default or is required, and has a description", () => {
  const rows = readDocument(FILE).rows(...COLUMNS);
  const listed = new Map(rows.map((row) => [codeIn(row["key"]), row]));
  for (const { key, required, preset } of schemaKeys()) {
    // A section that can also be a word has its table below its own row.
    if (key === "admin") continue;
    const row = listed.get(key);
    expect([key, row?.["required"], codeIn(row?.["default"])]).toEqual([
      key,
      required ? "yes" : "",
      preset,
    ]);
  }
  expect(rows.filter((row) => row["meaning"] === "")).toEqual([]);
});

test("no required key has a default, and each default is formatted as code", () => {
  const rows = readDocument(FILE).rows(...COLUMNS);
  const ambiguous = rows.filter(
    (row) =>
      row["default"] !== "" && (row["required"] !== "" || !/^`.*`$/.test(row["default"] ?? "")),
  );
  expect(ambiguous).toEqual([]);
  expect(
    rows.find((row) => codeIn(row["key"]) === "server.tls.clientCertificates.mode"),
  ).toMatchObject({ values: "`optional`, `required`", required: "yes", default: "" });
  expect(rows.find((row) => codeIn(row["key"]) === "routes[].auth")).toMatchObject({
    ...{
      values: "`required`, `optional`, `none`, `certificate`",
      required: "",
      default: "`required`",
    },
  });
});

test("words and numbers have their allowed values listed", () => {
  const rows = readDocument(FILE).rows(...COLUMNS);
  const bare = rows.filter(
    ({ type = "", values }) => /\b(?:words?|number)\b/.test(type) && values === "",
  );
  expect(bare).toEqual([]);
  const workers = rows.find((row) => codeIn(row["key"]) === "server.workers");
  expect(workers).toMatchObject({ type: "number", values: "0 to 512", default: "`1`" });
});
