/** The cookies of a `Cookie` field (RFC 6265 §4.2), unchanged: names keep their case, values their quotes. */

/** @returns the values of all cookies with this name. */
export function cookieValues(field: string, name: string): string[] {
  return field.split(";").flatMap((pair) => (nameOf(pair) === name ? [valueOf(pair)] : []));
}

/** @returns the field without the cookies of these names, otherwise byte for byte; undefined if no cookie is left. */
export function withoutCookies(field: string, names: readonly string[]): string | undefined {
  const pairs = field.split(";");
  const kept = pairs.filter((pair) => !names.includes(nameOf(pair)));
  if (kept.length === pairs.length) return field;
  const left = kept.join(";").trim();
  return left === "" ? undefined : left;
}

function nameOf(pair: string): string {
  return (pair.split("=", 1)[0] ?? "").trim();
}

function valueOf(pair: string): string {
  const at = pair.indexOf("=");
  return at === -1 ? "" : pair.slice(at + 1).trim();
}
