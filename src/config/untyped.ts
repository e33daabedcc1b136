import { isJsonObject } from "../lib/strict-json.ts";

/** Careful looks into a configuration that has not been validated yet: what is not there or of another type is empty. */

export function mappingAt(value: unknown): Readonly<Record<string, unknown>> {
  return isJsonObject(value) ? value : {};
}

export function listAt(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textAt(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
