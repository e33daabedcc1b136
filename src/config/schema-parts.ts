import { z } from "zod";
import { configurationSchema } from "./configuration.ts";
import { isJsonObject } from "../lib/text/strict-json.ts";

/** A part of the schema, such as the field of a key. */
export type Part = z.core.$ZodType;

/**
 * Returns parts with everything that they wrap, and with their alternatives.
 *
 * @param value if given, alternatives of another `kind` are left out.
 */
export function layersOf(parts: readonly Part[], value?: unknown): Part[] {
  return parts.flatMap((part) => [part, ...layersOf(innerOf(part, value), value)]);
}

function innerOf(part: Part, value: unknown): readonly Part[] {
  if (part instanceof z.ZodUnion) return part.options.filter((option) => isOfKind(option, value));
  if (part instanceof z.ZodPipe) return [part.in];
  return part instanceof z.ZodOptional ||
    part instanceof z.ZodExactOptional ||
    part instanceof z.ZodDefault ||
    part instanceof z.ZodPrefault
    ? [part.unwrap()]
    : [];
}

/** Reports whether an alternative matches the value, by `kind` if both have one. */
function isOfKind(option: Part, value: unknown): boolean {
  const kind = option instanceof z.ZodObject ? option.shape["kind"] : undefined;
  if (!(kind instanceof z.ZodLiteral) || !isJsonObject(value)) return true;
  return [...kind.values].some((word) => word === value["kind"]);
}

/**
 * Returns the parts of what is under a key, or in a list, in all alternatives. Where users choose the keys, as for
 * upstreams, every key has one, even the empty one.
 */
export function partsAt(layers: readonly Part[], key: string | number): Part[] {
  return layers.flatMap((each) => {
    if (typeof key === "number") return each instanceof z.ZodArray ? [each.element] : [];
    if (each instanceof z.ZodRecord) return [each.valueType];
    const isNamed = each instanceof z.ZodObject && Object.hasOwn(each.shape, key);
    const field = isNamed ? each.shape[key] : undefined;
    return field === undefined ? [] : [field];
  });
}

/** Returns the keys that the schema itself names, for each alternative. */
export function namesIn(layers: readonly Part[]): string[][] {
  return layers.flatMap((each) => (each instanceof z.ZodObject ? [Object.keys(each.shape)] : []));
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

export function knownKeys(parts: readonly Part[] = [configurationSchema()]): KnownKeys {
  const layers = layersOf(parts);
  return {
    names: [...new Set(namesIn(layers).flat())],
    open: partsAt(layers, "").length > 0,
    below(key) {
      const found = partsAt(layers, key);
      return found.length === 0 ? undefined : knownKeys(found);
    },
  };
}

export type JsonSchema = z.core.JSONSchema.BaseSchema;

/** Returns the JSON Schema (draft 2020-12) of the configuration file, for editors. */
export function jsonSchema(): JsonSchema {
  return {
    title: "Sallyport configuration",
    ...z.toJSONSchema(configurationSchema(), { io: "input", override: allowReference }),
  };
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
