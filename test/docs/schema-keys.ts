import { jsonSchema, type JsonSchema } from "../../src/config/schema-parts.ts";
import { DURATION, SIZE } from "../../src/lib/text/duration.ts";

/** A configuration key with a value, as shown in the reference. */
export interface SchemaKey {
  /** `users[].path`, `upstreams.<name>.targets` */
  readonly key: string;
  /** The `kind` of the mapping that has it, if there are several. */
  readonly kind: string;
  readonly type: string;
  /** The words that are allowed, or the range of a number. */
  readonly values: readonly string[];
  /** Whether the key is required if its section is present. */
  readonly required: boolean;
  /** In the notation of the file; empty if there is none. */
  readonly preset: string;
  readonly meaning: string;
}

/** Returns every key of the schema that accepts more than nested keys. */
export function schemaKeys(): SchemaKey[] {
  return [...below(jsonSchema(), "", "")];
}

function* below(mapping: JsonSchema, parent: string, kind: string): Generator<SchemaKey> {
  const { properties = {}, additionalProperties, required = [] } = mapping;
  for (const [name, schema] of Object.entries(properties)) {
    if (typeof schema === "object")
      yield* at(schema, { key: parent + name, kind, required: required.includes(name) });
  }
  if (typeof additionalProperties === "object" && !Array.isArray(additionalProperties))
    yield* at(additionalProperties, { key: `${parent}<name>`, kind, required: false });
}

function* at(
  schema: JsonSchema,
  { key, kind, required }: Pick<SchemaKey, "key" | "kind" | "required">,
): Generator<SchemaKey> {
  const kinds = alternatives(schema);
  const mappings = kinds.flatMap(mappingOf);
  const scalars = kinds.filter((each) => mappingOf(each).length === 0);
  const { default: preset, description: meaning = "" } = schema;
  if (scalars.length > 0) {
    const types = [...scalars.map(wordFor), ...(mappings.length > 0 ? ["mapping"] : [])];
    yield {
      key,
      kind,
      meaning,
      type: types.join(" or "),
      values: kinds.flatMap(valuesOf),
      required: required && preset === undefined,
      preset: preset === undefined ? "" : asWritten(preset),
    };
  }
  for (const { inside, mapping } of mappings)
    yield* below(mapping, `${key}${inside}.`, mappings.length > 1 ? kindOf(mapping) : kind);
}

function kindOf({ properties: { kind } = {} }: JsonSchema): string {
  return typeof kind === "object" ? alternatives(kind).flatMap(valuesOf).join(" ") : "";
}

function valuesOf(schema: JsonSchema): string[] {
  const { minimum, maximum, items, const: word, enum: words = [word] } = schema;
  if (minimum !== undefined) return [`${minimum}–${maximum}`];
  const own = words.filter((each) => each !== undefined).map(String);
  const isList = typeof items === "object" && !Array.isArray(items);
  return isList ? [...own, ...alternatives(items).flatMap(valuesOf)] : own;
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
