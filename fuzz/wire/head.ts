/** Header or trailer fields as received: not joined, without whitespace around the values. */
export type Fields = readonly (readonly [name: string, value: string])[];

const FIELD_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const FIELD_VALUE = /^[\t\u0020-\u007e\u0080-\u00ff]*$/;

export interface Head {
  readonly startLine: string;
  readonly fields: Fields;
  /** Where the body begins. */
  readonly end: number;
}

/**
 * Reads a header section strictly according to RFC 9112 §5: lines end in CRLF, no folding, no control characters.
 * @returns "incomplete" if the empty line has not arrived, "unclear" if it is not a header section.
 */
export function readHead(text: string, start: number): Head | "incomplete" | "unclear" {
  const end = text.indexOf("\r\n\r\n", start);
  if (end === -1) return "incomplete";
  const [startLine = "", ...lines] = text.slice(start, end).split("\r\n");
  const fields = readFields(lines);
  return fields === undefined ? "unclear" : { startLine, fields, end: end + 4 };
}

/** Reads field lines; returns undefined if one of them is not a field. */
export function readFields(lines: readonly string[]): Fields | undefined {
  const fields: [string, string][] = [];
  for (const line of lines) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(colon, 0));
    const value = line.slice(colon + 1);
    if (!FIELD_NAME.test(name) || !FIELD_VALUE.test(value)) return undefined;
    fields.push([name, withoutBlanks(value)]);
  }
  return fields;
}

/** Removes optional whitespace, which is only spaces and tabs (RFC 9110 §5.6.3). */
function withoutBlanks(value: string): string {
  let from = 0;
  let to = value.length;
  while (from < to && isBlank(value, from)) from += 1;
  while (to > from && isBlank(value, to - 1)) to -= 1;
  return value.slice(from, to);
}

function isBlank(text: string, at: number): boolean {
  return text[at] === " " || text[at] === "\t";
}

/** Returns all values of a name in order. @param name in lower case. */
export function valuesOf(fields: Fields, name: string): string[] {
  return fields.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value);
}

/** Returns the options of all `Connection` fields, in lower case. */
export function connectionOptions(fields: Fields): string[] {
  return valuesOf(fields, "connection").flatMap((value) =>
    value.split(",").map((option) => option.trim().toLowerCase()),
  );
}
