import { unescape } from "node:querystring";

/**
 * The fields of a query (`?a=1&b=2`), unchanged. Names are decoded for comparison, because backends decode them.
 */

/** @returns the values of a name, as sent; empty for a field without `=`. */
export function queryValues(query: string, name: string): string[] {
  return fieldsOf(query).flatMap((field) => {
    const at = field.indexOf("=");
    const sent = at === -1 ? field : field.slice(0, at);
    return decoded(sent) === name ? [at === -1 ? "" : field.slice(at + 1)] : [];
  });
}

/**
 * @returns the query without the fields of these names, otherwise byte for byte; empty, without `?`, if none is left.
 */
export function withoutQueryFields(query: string, names: readonly string[]): string {
  const fields = fieldsOf(query);
  const kept = fields.filter((field) => !names.includes(decoded(field.split("=", 1)[0] ?? "")));
  if (kept.length === fields.length) return query;
  return kept.length === 0 ? "" : `?${kept.join("&")}`;
}

function fieldsOf(query: string): string[] {
  return query === "" ? [] : query.slice(1).split("&");
}

/** Decodes a name. Never throws: a broken encoding stays, or becomes a replacement character. */
function decoded(name: string): string {
  return /[%+]/.test(name) ? unescape(name.replaceAll("+", " ")) : name;
}
