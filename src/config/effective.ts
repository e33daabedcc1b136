import { maskText } from "../observe/redaction.ts";
import type { YamlPath } from "../lib/positioned-yaml.ts";
import { jsonSchema, type JsonSchema } from "./json-schema.ts";
import type { LoadedConfiguration } from "./load.ts";
import { mayHoldSecret } from "./secret-lines.ts";
import { isMapping } from "./untyped.ts";

/** One value of the effective configuration: a scalar, or a list of scalars. */
interface EffectiveValue {
  readonly path: YamlPath;
  /** As it would be written; secrets are masked. */
  readonly value: unknown;
  /** `default`, or who said it. */
  readonly origin: string;
}

export interface Effective {
  /** Everything in the spelling of the file, defaults included. */
  readonly value: unknown;
  /** In the order of the schema. */
  readonly values: readonly EffectiveValue[];
}

const DEFAULT = "default";
const SECRET_REFERENCE = /\$\{(?:file:|[^}]*(?:pass|secret|token|credential|key))/i;
const MASKED = "[masked]";

/** What is in force, where it comes from, and nothing that could be a secret. */
export function effectiveConfiguration(loaded: LoadedConfiguration): Effective {
  const values: EffectiveValue[] = [];

  function leaf(schemas: readonly JsonSchema[], value: unknown, path: YamlPath): unknown {
    const said = loaded.said(path);
    const secret = said?.reference !== undefined && SECRET_REFERENCE.test(said.reference);
    const shown = secret ? said.reference : masked(path, inItsType(schemas, value));
    const through = said?.reference === undefined || secret ? "" : ` from ${said.reference}`;
    values.push({ path, value: shown, origin: said ? `${said.origin}${through}` : DEFAULT });
    return shown;
  }

  function walk(schema: JsonSchema, value: unknown, path: YamlPath): unknown {
    const schemas = alternativesOf(schema);
    if (Array.isArray(value) && value.some(isMapping)) {
      const items = schemas.map((each) => each.items).find(isSchema) ?? {};
      return value.map((entry, index) => walk(items, entry, [...path, index]));
    }
    if (!isMapping(value)) return leaf(schemas, value, path);
    const fields = fieldsOf(schemas, value);
    const named = Object.entries(fields).flatMap(([key, field]): [string, unknown][] => {
      const inner = Object.hasOwn(value, key) ? value[key] : field.default;
      return inner === undefined ? [] : [[key, walk(field, inner, [...path, key])]];
    });
    return Object.fromEntries(named);
  }

  const root = loaded.written ?? {};
  const { routes } = loaded.configuration;
  const whole = isMapping(root) && root["routes"] === undefined ? { ...root, routes } : root;
  return { value: walk(jsonSchema(), whole, []), values };
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function alternativesOf(schema: JsonSchema): JsonSchema[] {
  return [schema, ...(schema.anyOf ?? []).filter(isSchema).flatMap(alternativesOf)];
}

/** The fields of the alternative that a mapping is, in its order; names that the user gives (upstreams) as they come. */
function fieldsOf(
  schemas: readonly JsonSchema[],
  value: Readonly<Record<string, unknown>>,
): Record<string, JsonSchema> {
  const keys = Object.keys(value);
  const open = schemas.map((each) => each.additionalProperties).find(isSchema);
  if (open !== undefined) return Object.fromEntries(keys.map((key) => [key, open]));
  const fitting = schemas.find(({ properties }) =>
    keys.every((key) => properties !== undefined && Object.hasOwn(properties, key)),
  );
  return Object.fromEntries(
    Object.entries(fitting?.properties ?? {}).flatMap(([key, field]) =>
      isSchema(field) ? [[key, field] as const] : [],
    ),
  );
}

/** Variables and flags know only text, where a number or a boolean may be meant. */
function inItsType(schemas: readonly JsonSchema[], value: unknown): unknown {
  const types = schemas.map(({ type }) => type);
  if (typeof value !== "string") return value;
  if (types.includes("integer") && /^\d+$/.test(value)) return Number(value);
  return types.includes("boolean") && /^(?:true|false)$/.test(value) ? value === "true" : value;
}

function masked(path: YamlPath, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((entry) => masked(path, entry));
  if (typeof value !== "string") return value;
  const line = `${String(path.at(-1))}: ${value}`;
  const text = maskText(value);
  return text === value && mayHoldSecret(line) ? MASKED : text;
}
