import { GateError } from "./errors.ts";

/** What happens to header fields and trailers of requests whose names contain an underscore. */
export const UNDERSCORE_HEADERS = ["allow", "drop", "reject"] as const;
export type UnderscoreHeaders = (typeof UNDERSCORE_HEADERS)[number];

/**
 * Applies the policy to a header or trailer section, names and values alternating.
 *
 * @returns the fields that the policy lets through; the same list if it removes none.
 * @throws GateError `underscore_header`.
 */
export function applyUnderscorePolicy(
  fields: readonly string[],
  policy: UnderscoreHeaders,
): readonly string[] {
  if (policy === "allow" || !hasUnderscore(fields)) return fields;
  if (policy === "reject") throw new GateError("underscore_header");
  return fields.filter((_, i) => fields[i - (i % 2)]?.includes("_") === false);
}

function hasUnderscore(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2) if (fields[i]?.includes("_") === true) return true;
  return false;
}
