import { DURATION, formatDuration } from "../lib/duration.ts";
import type { YamlPath } from "../lib/positioned-yaml.ts";
import { isJsonObject } from "../lib/strict-json.ts";
import { mentionsSecret } from "../observe/redaction.ts";
import { jsonSchema, type JsonSchema } from "./json-schema.ts";
import type { LoadedConfiguration } from "./load.ts";
import { valueAt } from "./schema-faults.ts";
import { MASKED, withoutSecrets } from "./secret-lines.ts";

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
/** What a reference names, and its default. */
const REFERENCE = /\$\{([^}:]*)(:-)?([^}]*)\}/g;

/** What is in force, where it comes from, and nothing that could be a secret. */
export function effectiveConfiguration(loaded: LoadedConfiguration): Effective {
  const values: EffectiveValue[] = [];

  function leaf(schemas: readonly JsonSchema[], value: unknown, path: YamlPath): unknown {
    const shown = Array.isArray(value)
      ? value.map((entry: unknown, index) => shownAt([...path, index], entry))
      : shownAt(path, inItsType(schemas, value));
    values.push({ path, value: shown, origin: originOf(path, value) });
    return shown;
  }

  /** A secret stays the reference that it was made from. */
  function shownAt(path: YamlPath, value: unknown): unknown {
    const reference = loaded.said(path)?.reference;
    if (reference !== undefined && isSecret(reference)) return withoutDefaults(reference);
    return typeof value === "string" ? withoutSecrets(value) : value;
  }

  function originOf(path: YamlPath, value: unknown): string {
    const said = loaded.said(path);
    if (said === undefined) return DEFAULT;
    const places = Array.isArray(value) ? value.map((_, index) => [...path, index]) : [path];
    const saidThrough = places
      .flatMap((place) => loaded.said(place)?.reference ?? [])
      .filter((reference) => !isSecret(reference))
      .map(withoutSecrets)
      .join(", ");
    const through = saidThrough === "" ? "" : ` from ${saidThrough}`;
    return `${said.origin}${through}`;
  }

  /** What nobody said and the schema alone does not tell: it follows from something else. */
  function derived(field: JsonSchema, path: YamlPath): unknown {
    const value = valueAt(loaded.configuration, path);
    if (typeof value !== "number") return typeof value === "string" ? value : undefined;
    const isDuration = alternativesOf(field).some(({ pattern }) => pattern === DURATION.source);
    return isDuration ? formatDuration(value) : value;
  }

  function walk(schema: JsonSchema, value: unknown, path: YamlPath): unknown {
    const schemas = alternativesOf(schema);
    if (Array.isArray(value) && value.some(isJsonObject)) {
      const items = schemas.map((each) => each.items).find(isSchema) ?? {};
      return value.map((entry, index) => walk(items, entry, [...path, index]));
    }
    if (!isJsonObject(value)) return leaf(schemas, value, path);
    const fields = fieldsOf(schemas, value);
    const named = Object.entries(fields).flatMap(([key, field]): [string, unknown][] => {
      const inner = Object.hasOwn(value, key)
        ? value[key]
        : (field.default ?? derived(field, [...path, key]));
      return inner === undefined ? [] : [[key, walk(field, inner, [...path, key])]];
    });
    return Object.fromEntries(named);
  }

  const root = loaded.written ?? {};
  const { routes } = loaded.configuration;
  const whole = isJsonObject(root) && root["routes"] === undefined ? { ...root, routes } : root;
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
  const fitting = schemas.find(
    ({ properties }) =>
      properties !== undefined && keys.every((key) => Object.hasOwn(properties, key)),
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

function isSecret(reference: string): boolean {
  return [...reference.matchAll(REFERENCE)].some(
    ([, name = ""]) => name === "file" || mentionsSecret(name),
  );
}

/** What a reference falls back to is a secret as well. */
function withoutDefaults(reference: string): string {
  const masked = withoutSecrets(reference);
  return masked.replaceAll(REFERENCE, (all, name: string, form: string | undefined, rest: string) =>
    form === undefined || rest === "" ? all : `\${${name}:-${MASKED}}`,
  );
}
