/**
 * What JSON leaves as it is and a terminal or a reader of lines would act on: DEL and C1 control characters, U+2028 and
 * U+2029 (line ends to some readers), and the marks that reorder text (Trojan Source, CVE-2021-42574).
 */
const UNPRINTABLE = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Escapes what is not printable inside a JSON text; the value that it means stays the same. */
export function escapeUnprintable(json: string): string {
  return json.replace(
    UNPRINTABLE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Characters that stand for themselves in a JSON string and on a terminal: printable ASCII without `"` and `\`. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** A JSON string, quotes included. Lone surrogates come out as escapes. */
export function quoted(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : escapeUnprintable(JSON.stringify(text));
}
