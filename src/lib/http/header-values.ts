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
