/** Escapes ASCII characters that are unusual in names as `\xx`; no other character needs an escape (RFC 4515 §3). */
export function escapeFilterValue(value: string): string {
  return value.replaceAll(/(?![A-Za-z0-9@._ -])[\0-\x7f]/g, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return `\\${code.padStart(2, "0")}`;
  });
}

/**
 * Fills in the placeholders of a filter, `{username}` and `{dn}`. Escapes the values, so that they cannot change the
 * filter.
 */
export function filledFilter(
  template: string,
  values: Readonly<Record<"username" | "dn", string>>,
): string {
  return template.replaceAll(/\{(username|dn)\}/g, (_all, name: "username" | "dn") =>
    escapeFilterValue(values[name]),
  );
}

/** Returns the attributes that a filter compares with the user name. */
export function nameAttributes(template: string): string[] {
  return [...template.matchAll(/(?<![A-Za-z0-9.;-])([A-Za-z][A-Za-z0-9.;-]*)=\{username\}/g)].map(
    ([, attribute = ""]) => attribute,
  );
}
