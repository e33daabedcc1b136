import { z } from "zod";
import { configurationSchema } from "./configuration-schema.ts";

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
