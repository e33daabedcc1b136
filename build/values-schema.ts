/**
 * Copies the schema of the configuration from config.schema.json into the chart's values.schema.json, so that Helm refuses
 * an invalid `config` before anything is installed:
 *
 *   node build/values-schema.ts
 *
 * Helm supports only Go's regular expressions, and reports every alternative that does not match. So each `anyOf` becomes
 * one schema, which results in one error.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The part of JSON Schema that config.schema.json uses. */
interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly propertyNames?: Schema;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly pattern?: string;
  readonly [keyword: string]: unknown;
}

const ROOT = join(import.meta.dirname, "..");
const CHART_SCHEMA = join(ROOT, "deploy/helm/sallyport/values.schema.json");

/** Patterns with look-ahead, which Go's regular expressions lack, and their equivalents for Go. */
const FOR_GO: Readonly<Record<string, string>> = {
  "^(?=\\d)(?:(\\d+)h)?(?:(\\d+)m(?!s))?(?:(\\d+)s)?(?:(\\d+)ms)?$":
    "^(\\d+h(\\d+m)?(\\d+s)?(\\d+ms)?|\\d+m(\\d+s)?(\\d+ms)?|\\d+s(\\d+ms)?|\\d+ms)$",
  "^\\/(?!\\/)[!-~]*$": "^/([!-.0-~][!-~]*)?$",
};

/** `${NAME}`, as a pattern. */
const REFERENCE = "\\$\\{";

/** Returns the chart's schema with a new `config`. */
export function valuesSchema(): object {
  const values = readJson(CHART_SCHEMA);
  const { $schema: _, title: __, ...configuration } = readJson(join(ROOT, "config.schema.json"));
  const config = ofChart(forHelm(configuration));
  return { ...values, properties: { ...values.properties, config } };
}

/** Removes what the chart sets itself: the ports, and the upstream of a sidecar. */
function ofChart({ required, properties = {}, ...config }: Schema): Schema {
  const { server = {}, admin = {}, ...others } = properties;
  return {
    ...config,
    description:
      "The whole config.yaml, but for the ports: server.listen and admin.listen are the chart's",
    required: required?.filter((name) => name !== "upstreams") ?? [],
    properties: {
      server: withoutListen(server),
      // It cannot be turned off: the probes need it.
      admin: withoutListen(asObject(admin)),
      ...others,
    },
  };
}

function withoutListen({ properties = {}, ...schema }: Schema): Schema {
  const { listen: _, ...others } = properties;
  return { ...schema, properties: others };
}

function asObject({ pattern: _, ...schema }: Schema): Schema {
  return { ...schema, type: "object" };
}

/** Returns the same schema without alternatives, defaults, and expressions that Go lacks. */
function forHelm({ default: _, anyOf, ...schema }: Schema): Schema {
  if (anyOf !== undefined) return { ...schema, ...anyOf.map(forHelm).reduce(either) };
  const { properties, additionalProperties, propertyNames, items, pattern } = schema;
  return {
    ...words(schema),
    ...(pattern !== undefined && { pattern: goPattern(pattern) }),
    ...(properties !== undefined && { properties: mapped(properties, forHelm) }),
    ...(typeof additionalProperties === "object" && {
      additionalProperties: forHelm(additionalProperties),
    }),
    ...(propertyNames !== undefined && { propertyNames: forHelm(propertyNames) }),
    ...(items !== undefined && { items: forHelm(items) }),
  };
}

/** Converts an enumeration to a pattern, which can be joined with others. Helm reads `off` as `false`. */
function words({ enum: listed, const: only, ...schema }: Schema): Schema {
  const allowed = listed ?? (only === undefined ? undefined : [only]);
  if (allowed === undefined) return schema;
  const texts = allowed.filter((word) => typeof word === "string");
  const type = allowed.includes(false) ? ["string", "boolean"] : "string";
  return { ...schema, type, pattern: `^(${texts.join("|")})$` };
}

/** Merges two alternatives that differ in type, pattern or properties. Properties are required if both require them. */
function either(one: Schema, other: Schema): Schema {
  const types = [...new Set([one, other].flatMap(({ type = [] }) => type))];
  const pattern = eitherPattern([one, other].flatMap((schema) => schema.pattern ?? []));
  const properties = eitherProperties(one.properties, other.properties);
  const required = one.required?.filter((name) => other.required?.includes(name));
  const { description: _, ...merged } = { ...other, ...one };
  const joined: Schema = {
    ...(one.description === other.description ? { ...other, ...one } : merged),
    type: types.length === 1 ? (types[0] ?? []) : types,
    ...(pattern !== "" && { pattern }),
    ...(properties !== undefined && { properties }),
    ...(required !== undefined && { required }),
  };
  return [one, other].some(isAnyText) ? withoutPattern(joined) : joined;
}

function isAnyText({ type = [], pattern }: Schema): boolean {
  return pattern === undefined && [type].flat().includes("string");
}

function withoutPattern({ pattern: _, ...schema }: Schema): Schema {
  return schema;
}

/** Joins patterns. Most contain the alternative for a reference such as `${NAME}`, which is added only once. */
function eitherPattern(patterns: readonly string[]): string {
  const others = patterns.map((pattern) => pattern.replace(REFERENCE, "").replace(/\|$/, ""));
  const references = patterns.filter((pattern) => pattern.endsWith(REFERENCE));
  const all = [
    ...others.filter((pattern) => pattern !== ""),
    ...references.slice(0, 1).map(() => REFERENCE),
  ];
  return [...new Set(all)].join("|");
}

function eitherProperties(some: Schema["properties"], others: Schema["properties"]) {
  if (some === undefined || others === undefined) return some ?? others;
  return mapped({ ...others, ...some }, (schema, name) => {
    const [one, other] = [some[name], others[name]];
    return one === undefined || other === undefined ? schema : either(one, other);
  });
}

function goPattern(pattern: string): string {
  const same = FOR_GO[pattern] ?? pattern;
  if (/\(\?<?[=!]/.test(same))
    throw new Error(`Go cannot look around, say it otherwise: ${pattern}`);
  return same;
}

function mapped(
  schemas: Readonly<Record<string, Schema>>,
  map: (schema: Schema, name: string) => Schema,
): Record<string, Schema> {
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, map(schema, name)]),
  );
}

function readJson(file: string): Schema {
  const schema: Schema = JSON.parse(readFileSync(file, "utf8"));
  return schema;
}

if (import.meta.main)
  writeFileSync(CHART_SCHEMA, `${JSON.stringify(valuesSchema(), undefined, 2)}\n`);
