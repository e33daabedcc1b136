import type { YamlPath } from "../../lib/files/positioned-yaml.ts";
import { isJsonObject } from "../../lib/text/strict-json.ts";

/** Accessors for an unvalidated configuration. Missing values and values of another type become empty, or undefined. */

export type Mapping = Readonly<Record<string, unknown>>;

export function mappingAt(value: unknown, ...path: YamlPath): Mapping {
  const found = valueAt(value, path);
  return isJsonObject(found) ? found : {};
}

export function listAt(value: unknown, ...path: YamlPath): readonly unknown[] {
  const found = valueAt(value, path);
  return Array.isArray(found) ? found : [];
}

export function textAt(value: unknown, ...path: YamlPath): string | undefined {
  const found = valueAt(value, path);
  return typeof found === "string" ? found : undefined;
}

/** Returns the value at a path, or undefined if there is none. */
export function valueAt(value: unknown, path: YamlPath): unknown {
  return path.reduce<unknown>((parent, segment) => {
    if (Array.isArray(parent)) return typeof segment === "number" ? parent[segment] : undefined;
    return isJsonObject(parent) && Object.hasOwn(parent, segment) ? parent[segment] : undefined;
  }, value);
}

/** Returns a copy in which the value at a path is replaced. Missing mappings on the way are added. */
export function replacedAt(whole: unknown, path: YamlPath, value: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  if (Array.isArray(whole) && typeof key === "number") {
    return whole.map((entry, index) => (index === key ? replacedAt(entry, rest, value) : entry));
  }
  return { ...mappingAt(whole), [key]: replacedAt(valueAt(whole, [key]), rest, value) };
}
