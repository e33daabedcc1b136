/** The README's tables of the configuration say what the schema says. */
import { expect, test } from "vitest";
import { codeIn, readDocument } from "./markdown.ts";
import { schemaKeys } from "./schema-keys.ts";

const rows = readDocument("README.md").rows("key", "type", "default", "meaning");

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

test("every key is told with its type and its default, and no other", () => {
  const told = rows.map((row) => ({
    key: codeIn(row["key"]),
    type: row["type"],
    preset: codeIn(row["default"]),
  }));
  expect(told.toSorted(byKey)).toEqual(schemaKeys().toSorted(byKey));
});

test("every key has a meaning", () => {
  expect(rows.filter((row) => row["meaning"] === "")).toEqual([]);
});

function byKey(a: { key: string }, b: { key: string }): number {
  return a.key < b.key ? -1 : 1;
}
