/**
 * `docs/reference/configuration.md` is generated from the schema by `docs/generate-configuration.ts`, and has every
 * key.
 */
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { configurationReference } from "../../docs/generate-configuration.ts";
import { jsonSchema } from "../../src/config/schema-parts.ts";
import { codesIn, readDocument, ROOT } from "./markdown.ts";
import { schemaKeys, type SchemaKey } from "./schema-keys.ts";

const GENERATOR = "docs/generate-configuration.ts";
const FILE = "docs/reference/configuration.md";
const { text } = readDocument(FILE);

/** The rows of all tables, with the kind that the heading of the table names. */
const rows = text.split(/^#+ /m).flatMap((section) => {
  const [, kind = ""] = /^\w+: (\w+)\n/.exec(section) ?? [];
  const cells = section.matchAll(/^\| `([^`]+)` \| (.+) \|$/gm);
  return [...cells].map(([, key = "", meaning = ""]) => ({ key, kind, meaning }));
});

test("the reference is up to date with the schema", () => {
  expect(text, `run: node ${GENERATOR} > ${FILE}`).toBe(configurationReference());
});

test("the generator prints it", () => {
  const printed = execFileSync(process.execPath, [GENERATOR], { cwd: ROOT, encoding: "utf8" });
  expect(printed).toBe(configurationReference());
});

test("the schema is read completely", () => {
  const keys = schemaKeys();
  const expected: Partial<SchemaKey>[] = [
    { key: "server.listen", type: "text", required: false, preset: "0.0.0.0:8443" },
    { key: "tokens.trusted[].clockSkew", type: "duration", required: false, preset: "60s" },
    { key: "server.tls", type: "word or mapping", required: true, preset: "" },
    { key: "server.workers", type: "number", values: ["0–512"], preset: "1" },
    { key: "users[].url", kind: "ldap", required: true },
    { key: "users[].url", kind: "postgres", required: true },
    { key: "authorization.<name>.caFile", kind: "http", required: false },
  ];
  for (const key of expected) expect(keys).toContainEqual(expect.objectContaining(key));
  expect(new Set(keys.map(named)).size).toBe(keys.length);
});

test("every key of each kind has one row, with its default or that it is required, and its description", () => {
  const listed = new Map(rows.map((row) => [named(row), row.meaning]));
  expect(listed.size).toBe(rows.length);
  for (const key of schemaKeys()) {
    // A section that can also be a word has its table below its own row.
    if (key.key === "admin") continue;
    const cell = listed.get(named(key)) ?? "";
    const marked = cell.startsWith("*required*");
    expect([named(key), marked, presetIn(cell)]).toEqual([named(key), key.required, key.preset]);
    expect(key.meaning).not.toBe("");
    expect(`. ${cell}`.endsWith(`. ${key.meaning}`), named(key)).toBe(true);
  }
});

test("words and numbers have their allowed values listed, and no default is also required", () => {
  const listed = new Map(rows.map((row) => [named(row), row.meaning]));
  const keys = schemaKeys().filter(({ key, type }) => key !== "admin" && /word|number/.test(type));
  expect(keys.map(({ key }) => key)).toEqual(
    expect.arrayContaining(["server.workers", "routes[].auth", "users[].kind"]),
  );
  for (const key of keys) {
    const cell = listed.get(named(key)) ?? "";
    // A claim can be any number.
    if (!key.key.endsWith(".equals")) expect(key.values, named(key)).not.toEqual([]);
    for (const value of key.values)
      expect(value.includes("–") ? cell : codesIn(cell).join(" "), named(key)).toContain(value);
  }
  expect(listed.get("server.tls.clientCertificates.mode")).toMatch(
    /^\*required\*, `optional`, `required`\. /,
  );
  expect(listed.get("routes[].auth")).toMatch(
    /^\*\*`required`\*\*, `optional`, `none`, `certificate`\. /,
  );
  expect(listed.get("server.limits.bodyBytes")).toMatch(/^size or `unlimited`, \*\*`10MiB`\*\*\. /);
  expect(listed.get("routes[].retry.on")).toMatch(/^list of \*\*`connect`\*\*, .*, `504`\. /);
  expect(rows.filter((row) => /\*required\*.*\*\*/.test(row.meaning))).toEqual([]);
});

test("each section has one example, of itself", () => {
  const sections = text.split(/^## (?=[a-z]+$)/im).slice(1);
  const shown = sections.flatMap((section) => {
    const examples = [...section.matchAll(/^```yaml\n(?!#)([^]*?)^```$/gm)];
    return examples.map(([, example = ""]) => Object.keys(parse(example) as object));
  });
  expect(shown).toEqual(Object.keys(jsonSchema().properties ?? {}).map((name) => [name]));
  expect(sections).toHaveLength(shown.length);
});

/** A key, behind its kind if there are several. */
function named({ key, kind }: Pick<SchemaKey, "key" | "kind">): string {
  return `${kind} ${key}`.trim();
}

/** The default in a cell: what is bold, or a list of all that is. */
function presetIn(cell: string): string {
  const bold = [...cell.matchAll(/\*\*`([^`]*)`\*\*/g)].map(([, word = ""]) => word);
  return bold.length > 1 ? JSON.stringify(bold) : (bold[0] ?? "");
}
