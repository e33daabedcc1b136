import type { JsonSchema } from "../src/config/json-schema.ts";
import { DURATION, SIZE } from "../src/lib/text/duration.ts";

/** A key of the configuration, as the reference shows it. */
export interface Row {
  /** `users[].path`, `upstreams.<name>.targets` */
  readonly key: string;
  /** What may be written: `text`, `duration`, `list of words`, `word or mapping`. */
  readonly type: string;
  /** The words or the numbers that are allowed, as Markdown; empty where the type says all. */
  readonly values: string;
  /** Whether the key must be given where its section is. */
  readonly required: boolean;
  /** As Markdown; empty if the key has no default. */
  readonly preset: string;
  readonly meaning: string;
}

/** The key `key` of the schema, and every key below it, in their order. */
export function rowsOf(key: string, schema: JsonSchema, required: boolean): Row[] {
  const kinds = alternatives(schema);
  const below = kinds.flatMap(mappingsIn);
  const { default: preset, description = "" } = schema;
  const own: Row = {
    key,
    type: [...new Set(kinds.map(typeOf))].join(" or "),
    values: kinds.flatMap(valuesIn).join(", "),
    required: required && preset === undefined,
    preset: preset === undefined ? "" : written(preset),
    meaning: description,
  };
  const nested = below.flatMap(({ inside, mapping }) => rowsBelow(`${key}${inside}`, mapping));
  return [own, ...merged(nested)];
}

/** One row for a key that several kinds have and that means the same in all of them. */
function merged(rows: readonly Row[]): Row[] {
  const byMeaning = new Map<string, Row>();
  for (const row of rows) {
    const name = JSON.stringify([row.key, row.meaning]);
    const { values } = byMeaning.get(name) ?? row;
    byMeaning.set(name, {
      ...row,
      values: values === row.values ? values : `${values}, ${row.values}`,
    });
  }
  return [...byMeaning.values()];
}

function rowsBelow(parent: string, mapping: JsonSchema): Row[] {
  const { properties = {}, additionalProperties, required = [] } = mapping;
  const named = Object.entries(properties).flatMap(([name, schema]) =>
    typeof schema === "object" ? rowsOf(`${parent}.${name}`, schema, required.includes(name)) : [],
  );
  return [...named, ...freeRows(`${parent}.<name>`, additionalProperties)];
}

/** Names of one's own, as below `upstreams`, are no key: theirs are, unless they hold a plain value. */
function freeRows(key: string, schema: JsonSchema["additionalProperties"]): Row[] {
  if (!isSchema(schema)) return [];
  const kinds = alternatives(schema);
  const isPlain = kinds.some(({ type }) => type !== "object");
  return isPlain
    ? rowsOf(key, schema, false)
    : merged(kinds.flatMap((kind) => rowsBelow(key, kind)));
}

/** The forms that a value may have, without the `${…}` that may stand for any of them. */
function alternatives(schema: JsonSchema): JsonSchema[] {
  const { anyOf } = schema;
  if (anyOf === undefined) return schema.pattern === "\\$\\{" ? [] : [schema];
  return anyOf.flatMap(alternatives);
}

function mappingsIn(schema: JsonSchema): { inside: string; mapping: JsonSchema }[] {
  const { type, items } = schema;
  if (type === "object") return [{ inside: "", mapping: schema }];
  const entries = isSchema(items) ? alternatives(items) : [];
  return entries
    .filter((entry) => entry.type === "object")
    .map((mapping) => ({ inside: "[]", mapping }));
}

function typeOf(schema: JsonSchema): string {
  const { type, pattern = "", items } = schema;
  if (schema.enum !== undefined || schema.const !== undefined) return "word";
  if (pattern === DURATION.source) return "duration";
  if (pattern.startsWith(SIZE.source)) return "size";
  switch (type) {
    case "integer":
      return "number";
    case "object":
      return "mapping";
    case "string":
      return "text";
    case "array":
      return isSchema(items) ? `list of ${alternatives(items).map(pluralOf).join(" or ")}` : "list";
    default:
      return String(type);
  }
}

function pluralOf(schema: JsonSchema): string {
  const type = typeOf(schema);
  return type === "text" ? "texts" : `${type}s`;
}

function valuesIn(schema: JsonSchema): string[] {
  const { minimum, maximum, pattern = "", items } = schema;
  const words = schema.enum ?? (schema.const === undefined ? [] : [schema.const]);
  // A status may be a number or a text.
  if (words.length > 0) return [...new Set(words.map(String))].map(code);
  if (schema.type === "number") return ["any number"];
  if (schema.type === "integer") return [`${minimum ?? "…"} to ${maximum ?? "…"}`];
  if (pattern.endsWith("^unlimited$")) return [`a size or ${code("unlimited")}`];
  return schema.type === "array" && isSchema(items) ? alternatives(items).flatMap(valuesIn) : [];
}

function written(preset: unknown): string {
  // A mapping has its defaults at its keys.
  if (JSON.stringify(preset) === "{}") return "";
  return code(typeof preset === "string" ? preset : JSON.stringify(preset));
}

export function code(text: string): string {
  return `\`${text}\``;
}

function isSchema(
  value: JsonSchema | JsonSchema["items"] | JsonSchema["additionalProperties"],
): value is JsonSchema {
  return typeof value === "object" && !Array.isArray(value);
}
