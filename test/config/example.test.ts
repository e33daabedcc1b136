import { join } from "node:path";
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { jsonSchema, type JsonSchema } from "../../src/config/schema-parts.ts";
import { loadConfiguration } from "../../src/config/load.ts";
import { takeSnapshot } from "../../src/config/snapshot.ts";
import { parsePositionedYaml } from "../../src/lib/files/positioned-yaml.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const EXAMPLE = join(import.meta.dirname, "../../config.yaml");

test("the shipped example is valid", () => {
  const { configuration } = loadConfiguration({ file: EXAMPLE, env: {}, overrides: {} });
  expect(configuration.routes.map(({ name }) => name)).toEqual([
    "docs",
    "orders",
    "invoices",
    "app",
  ]);
});

test("the JSON Schema accepts the shipped example", async () => {
  const { value } = parsePositionedYaml(await readFile(EXAMPLE, "utf8"), EXAMPLE);
  expect(misfits(jsonSchema(), value)).toEqual([]);
  expect(misfits(jsonSchema(), { server: { tls: "off", listn: "x" }, upstreams: {} })).toEqual([
    ".server",
  ]);
  expect(misfits(jsonSchema(), { server: { tls: "of" }, upstreams: {} })).toEqual([".server.tls"]);
});

test("the JSON Schema describes every key, durations and sizes as text with a pattern", () => {
  const undescribed = keysOf(jsonSchema()).filter(([, schema]) => schema.description === undefined);
  expect(undescribed.map(([key]) => key)).toEqual([]);
  const keys = new Map(keysOf(jsonSchema()));
  for (const key of [".tokens.lifetime", ".server.limits.headerBytes"]) {
    expect(keys.get(key)?.anyOf?.[0]).toMatchObject({
      type: "string",
      pattern: expect.any(String),
    });
  }
  expect(jsonSchema().$schema).toBe("https://json-schema.org/draft/2020-12/schema");
});

test("missing files are reported at the keys that name them", async () => {
  await using directory = await temporaryDirectory();
  const file = await directory.write(
    "config.yaml",
    `server:
  tls: { certFile: tls.crt, keyFile: none.key }
users: [{ kind: file, path: users.yaml }]
tokens:
  keys: tls.crt
  trusted: [{ issuer: a, audience: b, jwks: { file: none.json }, algorithms: [ES256] }]
version: { file: . }
upstreams: { app: { targets: ["https://h"], tls: { caFile: none.crt, certFile: tls.crt, keyFile: tls.crt } } }
`,
  );
  for (const name of ["tls.crt", "users.yaml"]) await directory.write(name, "");
  const { missing } = await takeSnapshot({ file, env: {}, overrides: {} });
  expect(
    missing.map(({ line, column, message }) => `${line}:${column} ${message.split(" ")[0]}`),
  ).toEqual([
    "2:38 server.tls.keyFile",
    "5:9 tokens.keys",
    "6:53 tokens.trusted[0].jwks.file",
    "7:18 version.file",
    "8:60 upstreams.app.tls.caFile",
  ]);
});

/** Returns every key of the schema with its path, in all alternatives. */
function keysOf(schema: JsonSchema, path = ""): [string, JsonSchema][] {
  const alternatives = [schema, ...(schema.anyOf ?? [])];
  return alternatives.flatMap((alternative) => {
    const { properties = {}, items, additionalProperties } = alternative;
    const named = Object.entries(properties).flatMap(([key, child]): [string, JsonSchema][] =>
      typeof child === "object"
        ? [[`${path}.${key}`, child], ...keysOf(child, `${path}.${key}`)]
        : [],
    );
    const others = [items, additionalProperties].flatMap((child) =>
      typeof child === "object" && !Array.isArray(child) ? keysOf(child, `${path}[]`) : [],
    );
    return [...named, ...others];
  });
}

/** Returns the paths at which a value violates the schema; supports the part of JSON Schema that ours uses. */
function misfits(schema: JsonSchema, value: unknown, path = ""): string[] {
  if (schema.anyOf !== undefined) {
    const fits = schema.anyOf.some((alternative) => misfits(alternative, value, path).length === 0);
    return fits ? [] : [path];
  }
  const actual = Array.isArray(value) ? ["array"] : [typeof value];
  if (Number.isInteger(value)) actual.push("integer");
  if (schema.type !== undefined && !actual.includes(String(schema.type))) return [path];
  if (schema.pattern !== undefined && !new RegExp(schema.pattern, "u").test(String(value)))
    return [path];
  if (schema.enum !== undefined && !schema.enum.includes(String(value))) return [path];
  if (schema.const !== undefined && schema.const !== value) return [path];
  if (Array.isArray(value)) {
    const { items } = schema;
    if (typeof items !== "object" || Array.isArray(items)) return [];
    return value.flatMap((entry, index) => misfits(items, entry, `${path}[${index}]`));
  }
  if (typeof value !== "object" || value === null) return [];
  const fields = new Map<string, unknown>(Object.entries(value));
  const missing = (schema.required ?? []).filter((key) => !fields.has(key)).map(() => path);
  const inner = [...fields].flatMap(([key, child]) => {
    const below = schema.properties?.[key] ?? schema.additionalProperties;
    if (below === false || below === undefined) return [path];
    return typeof below === "object" ? misfits(below, child, `${path}.${key}`) : [];
  });
  return [...missing, ...inner];
}
