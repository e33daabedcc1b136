/** Maximum nesting of objects and arrays. */
const MAX_DEPTH = 32;
/** In valid JSON each has an end. Since none is demanded, text without one takes linear time, too. */
const STRINGS = /"[^"\\]*(?:\\.[^"\\]*)*"?/g;

/**
 * Parses untrusted JSON. Throws a `SyntaxError` for JSON that parsers interpret differently or that could pollute a
 * prototype: duplicate members (RFC 8259 §4), a member named `__proto__`, or more than 32 levels of nesting.
 *
 * `JSON.parse` silently keeps the last of duplicate members. Outside of strings, valid JSON has one colon per written
 * member, so a value with fewer members has duplicates.
 */
export function parseStrictJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (countMembers(value, 0) !== countColons(text.replace(STRINGS, ""))) {
    throw new SyntaxError("A member is named twice");
  }
  return value;
}

/** A member is named `__proto__`. */
export class ForbiddenMemberError extends SyntaxError {}

/** Whether a parsed value is an object with members. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Parses untrusted JSON of an object as `parseStrictJson` does. Returns undefined for anything else, since the message
 * of `JSON.parse` quotes the text.
 */
export function jsonObjectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value = parseStrictJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function countMembers(value: unknown, depth: number): number {
  if (typeof value !== "object" || value === null) return 0;
  if (depth === MAX_DEPTH) throw new SyntaxError(`Nested deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) {
    return value.reduce((sum: number, item: unknown) => sum + countMembers(item, depth + 1), 0);
  }
  let count = 0;
  for (const [name, member] of Object.entries(value)) {
    if (name === "__proto__")
      throw new ForbiddenMemberError("A member must not be named __proto__");
    count += 1 + countMembers(member, depth + 1);
  }
  return count;
}

function countColons(text: string): number {
  let count = 0;
  for (let at = text.indexOf(":"); at !== -1; at = text.indexOf(":", at + 1)) count += 1;
  return count;
}
