import { isJsonObject } from "../../lib/text/strict-json.ts";

/** Accessors for an unvalidated configuration. Missing values and values of another type become empty, or undefined. */

export function mappingAt(value: unknown): Readonly<Record<string, unknown>> {
  return isJsonObject(value) ? value : {};
}

export function listAt(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textAt(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
