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
  return { name, value, folded: foldedName(name), elements: elementsOf(name, value) };
}

/** The fields that a request sent under one name. */
class SentFields {
  /** Names and values, alternating. */
  readonly fields: readonly string[];
  #elements: ReadonlySet<string> | undefined;

  constructor(rawHeaders: readonly string[], folded: string) {
    const fields: string[] = [];
    for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
      const sent = rawHeaders[i] ?? "";
      if (sent.length !== folded.length || foldedName(sent) !== folded) continue;
      fields.push(sent, rawHeaders[i + 1] ?? "");
    }
    this.fields = fields;
  }

  get elements(): ReadonlySet<string> {
    return (this.#elements ??= new Set(
      this.fields.flatMap((text, at) => (at % 2 === 0 ? [] : partsOf(text, /[,;]/))),
    ));
  }
}

/**
 * By header section and folded name. Dozens of routes may compare the same header, and each is asked about each reading of
 * a path: to read a value of 16 KB every time took seconds.
 */
const sentBy = new WeakMap<readonly string[], Map<string, SentFields>>();

function fieldsSent(rawHeaders: readonly string[], folded: string): SentFields {
  let byName = sentBy.get(rawHeaders);
  if (byName === undefined) sentBy.set(rawHeaders, (byName = new Map()));
  let sent = byName.get(folded);
  if (sent === undefined) byName.set(folded, (sent = new SentFields(rawHeaders, folded)));
  return sent;
}

/**
 * Compares a header: true if exactly one field has this name and this value, "otherwise" if another reader could find the
 * value all the same. Readers take the first or the last of several fields, or join them; read a list, cookies, quotes or parameters;
 * ignore case; or do not distinguish `_` and `-` in names.
 *
 * @param rawHeaders names and values, alternating; never changed.
 */
export function hasHeader(
  rawHeaders: readonly string[],
  { name, value, folded, elements }: ComparedHeader,
): boolean | "otherwise" {
  const sent = fieldsSent(rawHeaders, folded);
  const { length, 0: first = "", 1: only } = sent.fields;
  if (length === 0) return false;
  if (length === 2 && only === value && first.toLowerCase() === name) return true;
  return elements.every((element) => sent.elements.has(element)) && "otherwise";
}

/** The elements of a list, without parameters. Cookies are separated by semicolons. */
function elementsOf(name: string, value: string): string[] {
  if (name === "cookie") return partsOf(value, ";");
  return partsOf(value, ",").map((element) => (element.split(";", 1)[0] ?? "").trim());
}

/** The parts of a value, without quotes and differences in case. Python also strips U+0085, which is no blank to JavaScript. */
function partsOf(value: string, separator: string | RegExp): string[] {
  return value
    .toLowerCase()
    .replaceAll(/["\u0085]/g, "")
    .split(separator)
    .map((part) => part.trim());
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
