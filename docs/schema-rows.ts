import type { JsonSchema } from "../src/config/schema-parts.ts";
import { DURATION, SIZE } from "../src/lib/text/duration.ts";

/** A key of the configuration, as the reference shows it. */
export interface Row {
  /** `users[].path`, `upstreams.<name>.targets` */
  readonly key: string;
  /** The `kind` of the mapping that has the key; empty if there is only one kind. */
  readonly kind: string;
  /** What may be written, with the default in bold, as Markdown. */
  readonly type: string;
  /** Whether the key must be given where its section is. */
  readonly required: boolean;
  readonly meaning: string;
}

/** The key `key` of the schema, and every key below it, in their order. */
export function rowsOf(key: string, schema: JsonSchema, required: boolean): Row[] {
  const { default: preset, description: meaning = "" } = schema;
  const type = typeWith(schema);
  const own: Row = { key, kind: "", type, required: required && preset === undefined, meaning };
  const mappings = alternatives(schema).flatMap(mappingsIn);
  const below = mappings.flatMap(({ inside, mapping }) => {
    const rows = rowsBelow(`${key}${inside}`, mapping);
    const kind = mappings.length > 1 ? kindOf(mapping) : "";
    return kind === "" ? rows : rows.map((row) => ({ ...row, kind }));
  });
  return [own, ...below];
}

function rowsBelow(parent: string, mapping: JsonSchema): Row[] {
  const { properties = {}, additionalProperties: free, required = [] } = mapping;
  const named = Object.entries(properties).flatMap(([name, schema]) => {
    if (typeof schema !== "object") return [];
    const rows = rowsOf(`${parent}.${name}`, schema, required.includes(name));
    // A mapping that is always there, or of names alone, says nothing beyond its keys.
    const isGroup = JSON.stringify(schema.default) === "{}" || schema.propertyNames !== undefined;
    return isGroup ? rows.slice(1) : rows;
  });
  if (!isSchema(free)) return named;
  // Names of one's own, as below `upstreams`, are no key: theirs are, unless they hold a plain value.
  const isPlain = alternatives(free).some(({ type }) => type !== "object");
  return [...named, ...rowsOf(`${parent}.<name>`, free, false).slice(isPlain ? 0 : 1)];
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

function kindOf({ properties = {} }: JsonSchema): string {
  const { kind } = properties;
  return typeof kind === "object"
    ? alternatives(kind)
        .map(({ const: word }) => word)
        .join("")
    : "";
}

/** The types that a default shows by its form. */
const SHOWN = new Set(["boolean", "duration", "list", "size", "text"]);

/** The type, with the default in bold: among its words, behind it, or instead of it. */
function typeWith(schema: JsonSchema): string {
  const { default: preset } = schema;
  const kinds = alternatives(schema).map((kind) => typeOf(kind, [preset].flat()));
  const type = [...new Set(kinds)].join(" or ");
  if (preset === undefined || type.includes("**")) return type;
  const bold = `**${code(typeof preset === "string" ? preset : JSON.stringify(preset))}**`;
  return SHOWN.has(type) ? bold : `${type}, ${bold}`;
}

function typeOf(schema: JsonSchema, preset: readonly unknown[]): string {
  const { type, pattern = "", items, minimum, maximum } = schema;
  const words = schema.enum ?? (schema.const === undefined ? [] : [schema.const]);
  // A status may be a number or a text.
  const spelled = [...new Set(words.map(String))];
  if (words.length > 0)
    return spelled
      .map((word) => (preset.includes(word) ? `**${code(word)}**` : code(word)))
      .join(", ");
  if (pattern === DURATION.source) return "duration";
  if (pattern.startsWith(SIZE.source))
    return pattern.endsWith("^unlimited$") ? `size or ${code("unlimited")}` : "size";
  if (maximum !== undefined) return `${minimum}–${maximum}`;
  if (type === "array") {
    const entries = (isSchema(items) ? alternatives(items) : []).map((item) =>
      typeOf(item, preset),
    );
    // The usual lists of texts, and mappings, whose keys follow, need no word.
    return entries.some((entry) => /[`\d]/.test(entry)) ? `list of ${entries.join(", ")}` : "list";
  }
  return type === "object" ? "mapping" : type === "string" ? "text" : String(type);
}

export function code(text: string): string {
  return `\`${text}\``;
}

function isSchema(
  value: JsonSchema | JsonSchema["items"] | JsonSchema["additionalProperties"],
): value is JsonSchema {
  return typeof value === "object" && !Array.isArray(value);
}
