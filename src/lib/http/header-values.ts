import { foldedName } from "./folded-name.ts";

/** Returns all values of a header. @param rawHeaders names and values, alternating. @param name in lower case. */
export function headerValues(rawHeaders: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const sent = rawHeaders[i] ?? "";
    if (sent.length === name.length && sent.toLowerCase() === name) {
      values.push(rawHeaders[i + 1] ?? "");
    }
  }
  return values;
}

/** A header and the value to compare it with, prepared for many comparisons. */
export interface ComparedHeader {
  /** In lower case. */
  readonly name: string;
  readonly value: string;
  /** A `foldedName`. */
  readonly folded: string;
  readonly elements: readonly string[];
}

/** @param name in lower case. */
export function comparedHeader(name: string, value: string): ComparedHeader {
  return { name, value, folded: foldedName(name), elements: elementsOf(value) };
}

/**
 * Compares a header: true if exactly one field has this name and this value, "otherwise" if another reader could find the
 * value all the same. Readers take the first or the last of several fields, or join them; read a list, quotes or parameters;
 * ignore case; or do not distinguish `_` and `-` in names.
 */
export function hasHeader(
  rawHeaders: readonly string[],
  { name, value, folded, elements }: ComparedHeader,
): boolean | "otherwise" {
  let count = 0;
  let isExact = false;
  const found: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const sent = rawHeaders[i] ?? "";
    if (sent.length !== name.length || foldedName(sent) !== folded) continue;
    const sentValue = rawHeaders[i + 1] ?? "";
    count += 1;
    isExact = sentValue === value && sent.toLowerCase() === name;
    found.push(...elementsOf(sentValue));
  }
  if (count === 1 && isExact) return true;
  return count > 0 && elements.every((element) => found.includes(element)) && "otherwise";
}

/** The elements of a list, without quotes, parameters and differences in case. */
function elementsOf(value: string): string[] {
  return value
    .toLowerCase()
    .replaceAll('"', "")
    .split(",")
    .map((element) => (element.split(";", 1)[0] ?? "").trim());
}

/**
 * Returns the value of a header that occurs exactly once, else undefined: of two fields, another reader could use the
 * other one.
 */
export function onlyValue(rawHeaders: readonly string[], name: string): string | undefined {
  let found: string | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const sent = rawHeaders[i] ?? "";
    if (sent.length !== name.length || sent.toLowerCase() !== name) continue;
    if (found !== undefined) return undefined;
    found = rawHeaders[i + 1];
  }
  return found;
}
