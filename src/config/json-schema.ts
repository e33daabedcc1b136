import { z } from "zod";
import { configurationSchema } from "./configuration.ts";

export type JsonSchema = z.core.JSONSchema.BaseSchema;

let made: JsonSchema | undefined;

/** Returns the JSON Schema (draft 2020-12) of the configuration file, for editors. */
export function jsonSchema(): JsonSchema {
  made ??= {
    title: "Sallyport configuration",
    ...z.toJSONSchema(configurationSchema(), { io: "input", override: allowReference }),
  };
  return made;
}

/** Allows `${NAME}` for every value that is not free text. */
function allowReference({ jsonSchema: schema }: { jsonSchema: JsonSchema }): void {
  if (schema.oneOf !== undefined) {
    // A discriminated union. The code that reads this schema looks for alternatives only in `anyOf`.
    schema.anyOf = schema.oneOf;
    delete schema.oneOf;
  }
  const { description, default: preset, ...rest } = schema;
  const { pattern, enum: words, const: word, type } = rest;
  const isFree = [pattern, words, word].every((limit) => limit === undefined);
  if (isFree && type !== "integer" && type !== "boolean") return;
  for (const key of Object.keys(rest)) Reflect.deleteProperty(schema, key);
  schema.anyOf = [rest, { type: "string", pattern: "\\$\\{" }];
}

/** The keys that the schema allows at a path, in all alternatives. */
export interface KnownKeys {
  /** The names that the schema itself defines. */
  readonly names: readonly string[];
  /** Whether users choose the names, as for upstreams. */
  readonly open: boolean;
  /** Returns the keys below a key; undefined if there is no such key. */
  below(key: string | number): KnownKeys | undefined;
}

export function knownKeys(): KnownKeys {
  return keysOf([jsonSchema()]);
}

function keysOf(schemas: readonly JsonSchema[]): KnownKeys {
  const alternatives = schemas.flatMap(withAlternatives);
  return {
    names: [...new Set(alternatives.flatMap(({ properties }) => Object.keys(properties ?? {})))],
    open: alternatives.some(({ additionalProperties }) => typeof additionalProperties === "object"),
    below(key) {
      const found = alternatives.flatMap((schema) => childOf(schema, key));
      return found.length === 0 ? undefined : keysOf(found);
    },
  };
}

/** Returns a schema with all its alternatives. */
export function withAlternatives(schema: JsonSchema): JsonSchema[] {
  return [schema, ...(schema.anyOf ?? []).flatMap(withAlternatives)];
}

function childOf(schema: JsonSchema, key: string | number): JsonSchema[] {
  const { properties = {}, additionalProperties, items } = schema;
  const child =
    typeof key === "number"
      ? items
      : Object.hasOwn(properties, key)
        ? properties[key]
        : additionalProperties;
  return typeof child === "object" && !Array.isArray(child) ? [child] : [];
}
