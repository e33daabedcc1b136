import { isJsonObject } from "../../lib/text/strict-json.ts";

/** Accessors for a configuration that has not been validated: missing values and those of another type are empty. */

export function mappingAt(value: unknown): Readonly<Record<string, unknown>> {
  return isJsonObject(value) ? value : {};
}

export function listAt(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textAt(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
