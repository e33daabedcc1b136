import { CONNECTION_FIELDS } from "../../lib/http/connection-fields.ts";
import { lowerCase } from "../../lib/text/by-name.ts";

/** Characters that are not allowed in a value (RFC 9110 §5.5), or that are not bytes. */
const NOT_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

/**
 * Creates the header section of a response, without fields that HTTP/2 forbids.
 *
 * @param fields names in any case and values, alternating.
 * @throws TypeError for a value with a control character.
 */
export function http2Fields(status: number, fields: readonly string[]): string[] {
  const section = [":status", String(status)];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = lowerCase(fields[i] ?? "");
    const value = fields[i + 1] ?? "";
    if (CONNECTION_FIELDS.has(name)) continue;
    if (NOT_IN_VALUE.test(value)) throw new TypeError("invalid character in a field value");
    section.push(name, value);
  }
  return section;
}

/** Returns the values of each name. @param fields names and values, alternating. */
export function valuesByName(fields: readonly string[]): Record<string, string[]> {
  const values: Record<string, string[]> = Object.create(null);
  for (let i = 0; i + 1 < fields.length; i += 2) {
    (values[fields[i] ?? ""] ??= []).push(fields[i + 1] ?? "");
  }
  return values;
}
