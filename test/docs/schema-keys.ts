import { jsonSchema, type JsonSchema } from "../../src/config/json-schema.ts";
import { DURATION, SIZE } from "../../src/lib/text/duration.ts";

/** A configuration key with a value, as shown in the reference. */
export interface SchemaKey {
  /** `users[].path`, `upstreams.<name>.targets` */
  readonly key: string;
  readonly type: string;
  /** Whether the key is required if its section is present. */
  readonly required: boolean;
  /** In the notation of the file; empty if there is none. */
  readonly preset: string;
}

/** Returns every key of the schema that accepts more than nested keys; a key of several kinds occurs once. */
export function schemaKeys(): SchemaKey[] {
  return [...new Map([...below(jsonSchema(), "")].map((each) => [each.key, each])).values()];
}

function* below(mapping: JsonSchema, parent: string): Generator<SchemaKey> {
  const { properties = {}, additionalProperties, required = [] } = mapping;
  for (const [name, schema] of Object.entries(properties)) {
    if (typeof schema === "object") yield* at(schema, parent + name, required.includes(name));
  }
  if (typeof additionalProperties === "object" && !Array.isArray(additionalProperties))
    yield* at(additionalProperties, `${parent}<name>`, false);
}

function* at(schema: JsonSchema, key: string, required: boolean): Generator<SchemaKey> {
  const kinds = alternatives(schema);
  const mappings = kinds.flatMap(mappingOf);
  const scalars = kinds.filter((kind) => mappingOf(kind).length === 0).map(wordFor);
  const { default: preset } = schema;
  if (scalars.length > 0) {
    const types = mappings.length > 0 ? [...scalars, "mapping"] : scalars;
    yield {
      key,
      type: types.join(" or "),
      required: required && preset === undefined,
      preset: preset === undefined ? "" : asWritten(preset),
    };
  }
  for (const { inside, mapping } of mappings) yield* below(mapping, `${key}${inside}.`);
}

/** Returns the alternative forms of a value, except `${…}`, which may stand for any of them. */
function alternatives(schema: JsonSchema): JsonSchema[] {
  const { anyOf } = schema;
  if (anyOf === undefined) return schema.pattern === "\\$\\{" ? [] : [schema];
  return anyOf.flatMap(alternatives);
}

interface Mapping {
  /** Uses `[]` for the entries of a list. */
  readonly inside: string;
  readonly mapping: JsonSchema;
}

function mappingOf(schema: JsonSchema): Mapping[] {
  const { type, items } = schema;
  if (type === "object") return [{ inside: "", mapping: schema }];
  const entries = typeof items === "object" && !Array.isArray(items) ? alternatives(items) : [];
  return entries
    .filter((entry) => entry.type === "object")
    .map((mapping) => ({ inside: "[]", mapping }));
}

function wordFor({ type, pattern = "", ...limits }: JsonSchema): string {
  if (limits.enum !== undefined || limits.const !== undefined) return "word";
  if (pattern === DURATION.source) return "duration";
  if (pattern.startsWith(SIZE.source)) return "size";
  switch (type) {
    case "integer":
      return "number";
    case "array":
      return "list";
    case "string":
      return "text";
    default:
      return String(type);
  }
}

function asWritten(preset: unknown): string {
  return typeof preset === "string" ? preset : JSON.stringify(preset);
}
