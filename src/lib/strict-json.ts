const DEEPEST = 32;
const STRINGS = /"[^"\\]*(?:\\.[^"\\]*)*"/g;

/**
 * Parses JSON from a stranger. Throws a `SyntaxError` where two readers could see different things or a merge could be
 * poisoned: a member named twice in one object (RFC 8259 §4), a member named `__proto__`, or more than 32 levels.
 *
 * `JSON.parse` keeps the last of two members and says nothing. Outside of strings, a valid text has one colon for each
 * member that was written: when the value has fewer members, one was written twice.
 */
export function parseStrictJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (countMembers(value, 0) !== countColons(text.replace(STRINGS, ""))) {
    throw new SyntaxError("A member is named twice");
  }
  return value;
}

/** Whether a parsed value is an object with members. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function countMembers(value: unknown, depth: number): number {
  if (typeof value !== "object" || value === null) return 0;
  if (depth === DEEPEST) throw new SyntaxError(`Nested deeper than ${DEEPEST} levels`);
  if (Array.isArray(value)) {
    return value.reduce((sum: number, item: unknown) => sum + countMembers(item, depth + 1), 0);
  }
  let count = 0;
  for (const [name, member] of Object.entries(value)) {
    if (name === "__proto__") throw new SyntaxError("A member must not be named __proto__");
    count += 1 + countMembers(member, depth + 1);
  }
  return count;
}

function countColons(text: string): number {
  let count = 0;
  for (let at = text.indexOf(":"); at !== -1; at = text.indexOf(":", at + 1)) count += 1;
  return count;
}
